"""Runs every benchmark and rewrites the generated part of docs/benchmarks.md.

`python -m bench`; with `--quick` a tenth of the work, printed only.
"""

from __future__ import annotations

import datetime
import platform
import sys
import time
from pathlib import Path

import sprat
from bench import driver, environment, growth, latency, peers_sqlite, worker_start
from bench.measure import QUICK

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
BEGIN = "<!-- begin: written by `make bench` -->"
END = "<!-- end: written by `make bench` -->"


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


def write(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    head, found, rest = page.partition(BEGIN)
    _, ended, tail = rest.partition(END)
    if not (found and ended):
        raise SystemExit(f"{PAGE} has lost its markers {BEGIN!r} and {END!r}")
    PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    text = report()
    print(text)
    if not QUICK:
        write(text)
