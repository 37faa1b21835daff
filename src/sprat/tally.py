"""What a transaction did to items, summed up to be written once: counts and statistics."""

from __future__ import annotations

import time

from sprat.histogram import bin_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Stats = dict[tuple[str, str, int], list[float]]  # pool, kind, bin -> n, total, squares
    Row = tuple[str, int, int, str, int, float, float, float]

FINE = 10  # seconds a bucket
HOLD_SECONDS = 0.25
COUNTED = ("pending", "delayed", "backlog", "claimed", "done", "poisoned", "cancelled")
PENDING, DELAYED, BACKLOG, CLAIMED, DONE, POISONED, CANCELLED = range(7)
COLUMN = {name: place for place, name in enumerate(COUNTED)}


class Tally:
    """`counts` are exact: they go with the transaction. `stats` may be held back for a moment
    (see Notes), so that a busy worker does not write them with every job."""

    __slots__ = ("counts", "stats")

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], list[int]] = {}
        self.stats: Stats = {}

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
        _add(self.stats, (pool, kind, 0), n, 0.0, 0.0)

    def took(self, pool: str, kind: str, seconds: float) -> None:
        seconds = max(0.0, seconds)
        _add(self.stats, (pool, kind, bin_of(seconds)), 1, seconds, seconds * seconds)


class Notes:
    """Statistics of committed transactions that are not written yet. They are written along with
    a later transaction, at most HOLD_SECONDS on; a process that is killed in between loses them."""

    def __init__(self) -> None:
        self._held: dict[int, Stats] = {}  # by bucket
        self._written_at = -HOLD_SECONDS

    def __bool__(self) -> bool:
        return bool(self._held)

    def rows(self, stats: Stats, now: float) -> Iterator[Row]:
        """What is held, and these, for the table; `written` once that is committed."""
        for at, some in (*self._held.items(), (_bucket(now), stats)):
            for (pool, kind, number), (n, total, squares) in some.items():
                yield (pool, FINE, at, kind, number, n, total, squares)

    def is_due(self) -> bool:
        return time.monotonic() - self._written_at >= HOLD_SECONDS

    def written(self) -> None:
        self._held = {}
        self._written_at = time.monotonic()

    def hold(self, stats: Stats, now: float) -> None:
        if stats:
            held = self._held.setdefault(_bucket(now), {})
            for key, row in stats.items():
                _add(held, key, *row)


def _bucket(now: float) -> int:
    return int(now // FINE) * FINE


def _add(stats: Stats, key: tuple[str, str, int], n: float, total: float, squares: float) -> None:
    row = stats.get(key)
    if row is None:
        stats[key] = [n, total, squares]
    else:
        row[0] += n
        row[1] += total
        row[2] += squares
