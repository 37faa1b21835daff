"""Runs every benchmark and rewrites the generated part of docs/benchmarks.md.

`python -m bench`; with `--quick` a tenth of the work, printed only.
"""

from __future__ import annotations

import datetime
import platform
import sys
import time

import sprat
from bench import driver, environment, growth, latency, peers_sqlite, worker_start
from bench.measure import QUICK
from bench.page import write


def report() -> str:
    began = time.monotonic()
    import apsw

    peers, kept = peers_sqlite.section()
    growing, more = growth.section()
    kept += more
    starting, more = worker_start.section()
    kept += more
    waiting, more = latency.section()
    kept += more
    facts = [
        f"`make bench` (`python -m bench`), {datetime.date.today().isoformat()}, "
        f"sprat {sprat.__version__}",
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}; "
        f"{environment.machine()}",
        f"targets met: {sum(one.met for one in kept)} of {len(kept)}",
    ]
    parts = [
        "\n".join(f"- {fact}" for fact in facts),
        f"## Against other queues on SQLite\n\n{peers}",
        f"## A store that fills\n\n{growing}",
        f"## A worker for one job\n\n{starting}",
        f"## How soon a job starts\n\n{waiting}",
        f"## The SQLite driver\n\n{driver.section()}",
    ]
    print(f"took {time.monotonic() - began:.0f} s", file=sys.stderr)
    return "\n\n".join(parts)


if __name__ == "__main__":
    text = report()
    print(text)
    if not QUICK:
        write("make bench", text)
