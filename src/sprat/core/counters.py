"""What a transaction did to items, summed up to be written once: counts and statistics."""

from __future__ import annotations

from sprat.core.histogram import FINE, bin_of
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    Event = tuple[str, str, int, float]  # pool, kind, how many, seconds that it took
    Job = tuple[str, float, float, float | None]  # pool, when claimed, its wait; the last one's run
    Sums = dict[tuple[str, int, str, int], list[float]]  # by pool, bucket, kind and bin
    Row = tuple[str, int, int, str, int, float, float, float]

HOLD_SECONDS = 0.25
COUNTED = ("pending", "delayed", "backlog", "claimed", "done", "poisoned", "cancelled")
PENDING, DELAYED, BACKLOG, CLAIMED, DONE, POISONED, CANCELLED = range(7)
COLUMN = {name: place for place, name in enumerate(COUNTED)}


class Counters:
    """`counts` are exact: they go with the transaction. `stats` may be held back for a moment
    (see Notes), so that a busy worker does not write them with every job."""

    __slots__ = ("counts", "stats")

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], list[int]] = {}
        self.stats: list[Event] = []

    def count(self, pool: str, group: str, place: int, n: int) -> None:
        self._row(pool, group)[place] += n

    def moved(self, pool: str, group: str, before: int, after: int) -> None:
        row = self._row(pool, group)
        row[before] -= 1
        row[after] += 1

    def _row(self, pool: str, group: str) -> list[int]:
        row = self.counts.get((pool, group))
        if row is None:
            row = self.counts[pool, group] = [0] * len(COUNTED)
        return row

    def happened(self, pool: str, kind: str, n: int = 1) -> None:
        self.stats.append((pool, kind, n, 0.0))

    def took(self, pool: str, kind: str, seconds: float) -> None:
        self.stats.append((pool, kind, 1, seconds))


class HeldStatistics:
    """Statistics of committed transactions that are not written yet. They are written along with
    a later transaction, at most HOLD_SECONDS on; a process that is killed in between loses them."""

    def __init__(self) -> None:
        self.held: list[tuple[float, list[Event]]] = []  # with the moment of the transaction
        self.jobs: list[Job] = []  # one was claimed, and perhaps another one completed for it
        self.due_at = 0.0  # by the monotonic clock: when to write them

    def __bool__(self) -> bool:
        return bool(self.held or self.jobs)

    def rows(self, stats: list[Event], now: float) -> list[Row]:
        """What is held, and these, for the table; `written` once that is committed."""
        sums: Sums = {}
        for moment, events in (*self.held, (now, stats)):
            at = int(moment // FINE) * FINE
            for pool, kind, n, took in events:
                _add(sums, pool, at, kind, took, n)
        for pool, moment, waited, ran in self.jobs:
            at = int(moment // FINE) * FINE
            _add(sums, pool, at, "wait", waited)
            if ran is not None:
                _add(sums, pool, at, "run", ran)
                _add(sums, pool, at, "done", 0.0)
        return [
            (pool, FINE, at, kind, number, n, total, squares)
            for (pool, at, kind, number), (n, total, squares) in sums.items()
        ]

    def is_due(self) -> bool:
        return runtime.monotonic() >= self.due_at

    def hold(self, stats: list[Event], now: float) -> None:
        self.held.append((now, stats))

    def written(self) -> None:
        self.held = []
        self.jobs = []
        self.due_at = runtime.monotonic() + HOLD_SECONDS


def _add(sums: Sums, pool: str, at: int, kind: str, took: float, n: int = 1) -> None:
    """How many, their seconds and squared seconds. Called three times a job."""
    seconds = took if took > 0.0 else 0.0
    key = (pool, at, kind, bin_of(seconds) if seconds else 0)
    row = sums.get(key)
    if row is None:
        row = sums[key] = [0, 0.0, 0.0]
    row[0] += n
    row[1] += seconds
    row[2] += seconds * seconds
