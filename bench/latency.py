"""From a push to the start of its job, and from the death of a worker to the job's next start.

`python -m bench.latency`: with no process of ours running (push, fork server, scaling pass,
fork, claim), with an idle worker, and after kill -9 of a busy worker whose fork server is alive.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sprat
from bench.measure import HERE, Target, percentile, scaled, table, targets
from sprat.core.model import LIVE
from sprat.store.store import Store

POOL = "bench"
PUSHES = max(10, scaled(60))
KILLS = scaled(20)
GAP_SECONDS = (0.05, 0.15)
NEST_LEAVES_SECONDS = 0.25  # after its last worker
PATIENCE_SECONDS = 30.0
KILLED_LIMIT_SECONDS = 1.0


class Fleet:
    """A pool whose jobs note when they start."""

    def __init__(self, place: Path, store: Store, job: str, **settings: object) -> None:
        self.store = store
        self.pool = store.pool(POOL)
        self.pool.configure(
            handler=f"bench_jobs:{job}",
            directory=str(HERE / "fleet"),
            start_on_push=True,
            max_workers=1,
            **settings,
        )
        self.notes = place / "notes"
        self.notes.touch()

    def push(self, n: int) -> tuple[int, int]:
        """When the push began and when it returned, in nanoseconds."""
        began = time.monotonic_ns()
        self.pool.push({"n": n, "notes": str(self.notes)})
        return began, time.monotonic_ns()

    def starts(self, n: int) -> list[tuple[int, int]]:
        """When job n started and in which process, for each time it did."""
        lines = [line.split() for line in self.notes.read_text().splitlines()]
        return [(int(at), int(pid)) for number, at, pid in lines if int(number) == n]

    def started(self, n: int, times: int = 1) -> int:
        """When the job started, once it has done so this often."""
        until(lambda: len(self.starts(n)) >= times, f"job {n} did not start")
        return self.starts(n)[times - 1][0]

    def live(self) -> list[int]:
        return [worker.pid or 0 for worker in self.store.workers.list(status=LIVE)]

    def until_nobody_is_left(self) -> None:
        until(lambda: not self.live(), "a worker did not leave")
        time.sleep(NEST_LEAVES_SECONDS)


@contextmanager
def fleet(job: str, **settings: object) -> Iterator[Fleet]:
    source = str(Path(sprat.__file__).parent.parent)
    os.environ["PYTHONPATH"] = source  # the fork server inherits it
    with (
        tempfile.TemporaryDirectory(prefix="sprat-bench-") as place,
        sprat.open_store(f"sqlite:///{place}/fleet.db") as store,
    ):
        made = Fleet(Path(place), store, job, **settings)
        yield made
        for worker in store.workers.list(status="active"):
            store.workers.update_status(worker, "terminating")
        made.until_nobody_is_left()


def until(condition: Callable[[], bool], complaint: str) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(complaint)
        time.sleep(0.002)


# -- measurements -------------------------------------------------------------------------------


def nobody_there(isolation: str) -> list[float]:
    """Milliseconds from the call of push to the start of the job, all processes still to come."""
    spans: list[float] = []
    with fleet("stamp", isolation=isolation, idle_seconds=0.0) as made:
        for n in range(PUSHES + 1):
            began, _ = made.push(n)
            spans.append((made.started(n) - began) / 1e6)
            made.until_nobody_is_left()
    return spans[1:]  # the first one compiles, and fills the file cache


def idle_worker(isolation: str) -> list[float]:
    """The same, with a worker that waits."""
    spans: list[float] = []
    dice = random.Random(1)
    with fleet("stamp", isolation=isolation, idle_seconds=60.0) as made:
        for n in range(PUSHES + 1):
            began, _ = made.push(n)
            spans.append((made.started(n) - began) / 1e6)
            time.sleep(dice.uniform(*GAP_SECONDS))
    return spans[1:]


def killed(isolation: str) -> list[float]:
    """Milliseconds from kill -9 of the worker to the next start of its job."""
    spans: list[float] = []
    with fleet("stuck", isolation=isolation, idle_seconds=60.0) as made:
        for n in range(KILLS):
            made.push(n)
            made.started(n)
            (worker,) = made.live()
            at = time.monotonic_ns()
            os.kill(worker, signal.SIGKILL)
            spans.append((made.started(n, times=2) - at) / 1e6)
            _end(made.starts(n)[0][1])
            until(lambda: made.pool.counts().claimed == 0, "the job did not end")
    return spans


def _end(job: int) -> None:
    """The killed worker's job, if it ran in a child that outlived it."""
    try:
        os.kill(job, signal.SIGKILL)
    except ProcessLookupError:
        pass


ROWS = (
    ("no process of ours running: fork server, pass, fork, claim", nobody_there),
    ("an idle worker", idle_worker),
    ("kill -9 of the busy worker, fork server alive: to its next start", killed),
)


def section() -> tuple[str, list[Target]]:
    rows: list[list[object]] = []
    slowest: dict[str, float] = {}
    for what, measure in ROWS:
        for isolation in ("none", "process"):
            print(f"  {what}, isolation {isolation}", file=sys.stderr, flush=True)
            spans = measure(isolation)
            figures = [percentile(spans, percent) for percent in (50, 95, 99)]
            rows.append([what, isolation, len(spans), *figures, max(spans)])
            slowest[what] = max(slowest.get(what, 0.0), *spans)
    head = ["push to the start of its job, ms", "isolation", "times", "p50", "p95", "p99", "max"]
    limit = slowest[ROWS[2][0]] / 1e3 / KILLED_LIMIT_SECONDS
    kept = [Target("after kill -9, slowest start to one second", limit, 1.0)]
    return f"{table(head, rows)}\n\n{targets('', kept)}", kept


if __name__ == "__main__":
    print(section()[0])
