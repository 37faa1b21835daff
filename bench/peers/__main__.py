"""Runs all contenders in turn on each store and rewrites their part of docs/benchmarks.md.

`python -m bench.peers [redis|postgres|sqlite ...] [--only sprat,PgQueuer]`; `--quick`: a tenth of
the work. Only the whole of it is written into the page.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
import time
from collections.abc import Sequence

import sprat
from bench import environment
from bench.measure import QUICK, Figures, Target, median, table, targets
from bench.page import write
from bench.peers.cases import CASES, Case
from bench.peers.servers import Postgres, Redis, Server, Sqlite
from bench.peers.trial import Contender, draining, pushing, waiting

ROUNDS = 1 if QUICK else 3
PLACES: dict[str, type[Server]] = {"redis": Redis, "postgres": Postgres, "sqlite": Sqlite}
# Of the best other: the most CPU a job may cost us, worker and server together.
CPU_LIMITS = {"redis": 0.25, "postgres": 0.5, "sqlite": 0.5}

Measured = list[tuple[Contender, Figures]]


def measure(contenders: Sequence[Contender], server: Server) -> Measured:
    runs: dict[str, list[Figures]] = {contender.name: [] for contender in contenders}
    for number in range(ROUNDS):
        for contender in contenders if number % 2 == 0 else contenders[::-1]:
            print(f"  round {number + 1}/{ROUNDS}: {contender.name}", file=sys.stderr, flush=True)
            runs[contender.name].append(one(contender, server))
    return [(contender, median(runs[contender.name])) for contender in contenders]


def one(contender: Contender, server: Server) -> Figures:
    two = draining(contender, server, contender.best, contender.processes)
    return {
        **pushing(contender, server),
        **draining(contender, server, contender.one, 1),
        **{f"two_{name}": value for name, value in two.items()},
        **(waiting(contender, server) if contender.waits else {}),
    }


def section(name: str, only: Sequence[str]) -> tuple[str, list[Target]]:
    server = PLACES[name]()
    try:
        contenders, absent = gather(CASES[PLACES[name]], only)
        found = measure(contenders, server)
    finally:
        server.stop()
    parts = [f"### {server.version}: {server.settings}", running(found), *absent, resting(found)]
    kept = [] if only else promises(name, found)
    if kept:
        parts.append(targets("against the best other", kept))
    return "\n\n".join(parts), kept


def gather(cases: Sequence[Case], only: Sequence[str]) -> tuple[list[Contender], list[str]]:
    """Who runs, and a sentence about each that cannot run here."""
    contenders: list[Contender] = []
    absent: list[str] = []
    for case in cases:
        if only and not case.contender.name.startswith(tuple(only)):
            continue
        try:
            contenders.append(case.ready())
        except environment.NoPython as why:
            absent.append(f"{case.contender.name} was not run: {why}.")
    return contenders, absent


def running(found: Measured) -> str:
    rows = [
        [
            contender.name,
            figures["worker_cpu"],
            figures["server_cpu"],
            figures["rate"],
            figures["two_rate"],
            figures["push_rate"],
            figures["bulk_rate"],
            contender.settings,
        ]
        for contender, figures in found
    ]
    head = ["no-op jobs", "worker CPU us", "server CPU us", "jobs/s", "on 2 cores"]
    return table([*head, "push/s", "bulk push/s", "settings"], rows)


def resting(found: Measured) -> str:
    rows = [
        [contender.name, *(figures[name] for name in ("p50", "p95", "p99"))]
        + [figures[name] for name in ("start_ms", "start_cpu", "memory", "idle_cpu")]
        for contender, figures in found
        if contender.waits
    ]
    head = ["an idle worker", "p50 ms", "p95 ms", "p99 ms"]
    return table([*head, "start ms", "start CPU ms", "memory MB", "idle CPU ms/s"], rows)


def promises(name: str, found: Measured) -> list[Target]:
    ours = found[0][1]
    others = [figures for one, figures in found if one.waits and not one.is_ours]
    bare = next((figures for contender, figures in found if not contender.waits), None)

    def more(what: str, name: str) -> Target:
        rival = max(other[name] for other in others)
        return Target(f"{what}, times the best", ours[name] / rival, 1, at_least=True)

    kept = [
        Target("CPU a job, worker and server", cpu(ours) / min(map(cpu, others)), CPU_LIMITS[name]),
        more("jobs a second, one worker", "rate"),
        more("jobs a second, two cores", "two_rate"),
        more("push, one by one", "push_rate"),
        more("push, many", "bulk_rate"),
        *(
            Target(f"latency {name}", ours[name] / min(other[name] for other in others), 1)
            for name in ("p50", "p99")
        ),
    ]
    if bare is not None:
        kept.append(Target("CPU a job against the bare statements", cpu(ours) / cpu(bare), 2))
    return kept


def cpu(figures: Figures) -> float:
    return float(figures["worker_cpu"] + figures["server_cpu"])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers")
    parser.add_argument("stores", nargs="*", choices=[[], *PLACES], metavar="|".join(PLACES))
    parser.add_argument("--only", default="", help="names of contenders, with commas between")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    return parser.parse_args()


def main() -> None:
    began = time.monotonic()
    given = arguments()
    chosen, only = given.stores or list(PLACES), [name for name in given.only.split(",") if name]
    found = [section(name, only) for name in chosen]
    kept = [one for _, promised in found for one in promised]
    facts = [
        f"`make bench-peers`, {datetime.date.today().isoformat()}, sprat {sprat.__version__}, "
        f"Python {platform.python_version()}, {environment.machine()}",
        f"medians of {ROUNDS} rounds, all contenders in turn in each; "
        f"targets met: {sum(one.met for one in kept)} of {len(kept)}",
    ]
    text = "\n\n".join(["\n".join(f"- {fact}" for fact in facts), *(text for text, _ in found)])
    print(text)
    print(f"took {time.monotonic() - began:.0f} s", file=sys.stderr)
    if not QUICK and not only and len(chosen) == len(PLACES):
        write("make bench-peers", text)


if __name__ == "__main__":
    main()
