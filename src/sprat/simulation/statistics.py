"""The statistics of a simulated pool: what its store would say, added up as jobs come and go.

Buckets are 10 seconds wide, and 15 minutes once they are two hours old, as in every store
(docs/learn/protocol.md). Nothing is ever scanned: the window's sums are kept by adding what comes
and taking off what falls out.
"""

from __future__ import annotations

from collections import deque

from sprat.core import histogram, model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.simulation.fleet import SimulatedFleet

    Bins = tuple[tuple[int, int], ...]

FINE_SECONDS = 10
COARSE_SECONDS = 900
FINE_FOR_SECONDS = 2 * 3600.0
EPOCH = 19_675 * 86_400.0  # a simulation begins at a midnight, so that days are days


class Bucket:
    """One stretch: how many arrived, and a histogram each of what waited and ran."""

    __slots__ = (
        *("arrivals", "at", "ended", "run_square", "run_total", "runs", "started", "wait_total"),
        "waits",
    )

    def __init__(self, at: int) -> None:
        self.at = at
        self.arrivals = self.started = self.ended = 0
        self.waits: dict[int, int] = {}
        self.runs: dict[int, int] = {}
        self.wait_total = self.run_total = self.run_square = 0.0

    def add(self, other: Bucket, sign: int = 1) -> None:
        self.arrivals += sign * other.arrivals
        self.started += sign * other.started
        self.ended += sign * other.ended
        self.wait_total += sign * other.wait_total
        self.run_total += sign * other.run_total
        self.run_square += sign * other.run_square
        for mine, theirs in ((self.waits, other.waits), (self.runs, other.runs)):
            for number, n in theirs.items():
                mine[number] = mine.get(number, 0) + sign * n

    def is_empty(self) -> bool:
        return not (self.arrivals or self.waits or self.runs)

    def as_record(self, width: int) -> model.StatsBucket:
        return model.StatsBucket(
            at=EPOCH + self.at,
            seconds=float(width),
            arrivals=self.arrivals,
            starts=self.started,
            finished=self.ended,
            wait_seconds=self.wait_total,
            run_seconds=self.run_total,
            waits=tuple(sorted(self.waits.items())),
            runs=tuple(sorted(self.runs.items())),
        )


class LazyStats:
    """Stands in for a `model.Stats` until the next pass. Most policies read no percentile, so those
    are worked out when they are."""

    failed = 0

    def __init__(self, seconds: float, parts: Sequence[Bucket]) -> None:
        self._parts = parts
        self.seconds = seconds
        self.arrivals = sum(part.arrivals for part in parts)
        self.starts = sum(part.started for part in parts)
        self.finished = runs = sum(part.ended for part in parts)
        waited = sum(part.wait_total for part in parts)
        self.wait_mean = waited / self.starts if self.starts else 0.0
        mean = self.run_mean = sum(part.run_total for part in parts) / runs if runs else 0.0
        square = sum(part.run_square for part in parts) / runs if runs else 0.0
        self.run_scv = max(0.0, square / (mean * mean) - 1.0) if mean * mean > 0.0 else 0.0

    def __getattr__(self, name: str) -> float:
        """A percentile that is read for the first time: `wait_p95` and the like."""
        kind, _, q = name.partition("_p")
        if kind not in ("wait", "run") or not q.isdigit():
            raise AttributeError(f"statistics have no {name}")
        bins: dict[int, int] = {}
        for part in self._parts:
            for number, n in (part.waits if kind == "wait" else part.runs).items():
                bins[number] = bins.get(number, 0) + n
        value = histogram.percentile(bins, int(q) / 100)
        setattr(self, name, value)
        return value

    def as_record(self) -> model.Stats:
        return model.Stats(**{name: getattr(self, name) for name in model.Stats._names})


class SimulatedStatistics:
    """Follows a fleet. `update` at every pass, then ask."""

    def __init__(self, *, window: float = 600.0, history_seconds: float = 0.0) -> None:
        self._window = window
        self._history_seconds = history_seconds
        self._arrived = self._started = 0  # counted so far
        self._open: dict[int, Bucket] = {}  # by begin: those that may still grow
        self._inside: deque[Bucket] = deque()  # the closed ones in the window, oldest first
        self._sums = Bucket(0)
        self._stats: LazyStats | None = None  # None: something happened since it was made
        self._fine: deque[model.StatsBucket] = deque()
        self._coarse: deque[model.StatsBucket] = deque()

    def update(self, fleet: SimulatedFleet) -> None:
        """Count what happened since the last time."""
        if fleet.finished or fleet.arrived > self._arrived or fleet.started > self._started:
            self._stats = None
        arrivals, waits = fleet.arrivals, fleet.waits
        for job in range(self._arrived, fleet.arrived):
            self._bucket(arrivals[job]).arrivals += 1
        for job in range(self._started, fleet.started):
            wait = waits[job]
            bucket = self._bucket(arrivals[job] + wait)
            number = histogram.bin_of(wait)
            bucket.waits[number] = bucket.waits.get(number, 0) + 1
            bucket.started += 1
            bucket.wait_total += wait
        for job in fleet.finished:
            self._finish(arrivals[job] + waits[job], fleet.services[job])
        self._arrived, self._started = fleet.arrived, fleet.started
        fleet.finished.clear()
        self._close(fleet.now)

    def stats(self) -> LazyStats:
        if self._stats is None:
            self._stats = LazyStats(self._window, (self._sums, *self._open.values()))
        return self._stats

    def history(self) -> tuple[model.StatsBucket, ...]:
        """As far back as was asked for, oldest first; where nothing happened there is no bucket."""
        if not self._history_seconds:
            return ()
        growing = [b.as_record(FINE_SECONDS) for _, b in sorted(self._open.items())]
        return (*self._coarse, *self._fine, *growing)

    def _bucket(self, moment: float) -> Bucket:
        at = int(moment // FINE_SECONDS) * FINE_SECONDS
        found = self._open.get(at)
        if found is None:
            found = self._open[at] = Bucket(at)
        return found

    def _finish(self, began: float, seconds: float) -> None:
        bucket = self._bucket(began + seconds)
        number = histogram.bin_of(seconds)
        bucket.runs[number] = bucket.runs.get(number, 0) + 1
        bucket.ended += 1
        bucket.run_total += seconds
        bucket.run_square += seconds * seconds

    def _close(self, now: float) -> None:
        """Move what will not grow any more into the window and the history, drop what is old."""
        for at in sorted(at for at in self._open if at + FINE_SECONDS <= now):
            bucket = self._open.pop(at)
            self._stats = None  # it holds the bucket, which is about to be added to the sums
            self._inside.append(bucket)
            self._sums.add(bucket)
            if self._history_seconds:
                self._fine.append(bucket.as_record(FINE_SECONDS))
        while self._inside and self._inside[0].at + FINE_SECONDS <= now - self._window:
            self._sums.add(self._inside.popleft(), -1)
            self._stats = None
        if not self._inside:
            self._sums = Bucket(0)  # what rounding left of the sums goes too
        self._roll_up(EPOCH + now)

    def _roll_up(self, now: float) -> None:
        while self._fine and _wide(self._fine[0]) + COARSE_SECONDS <= now - FINE_FOR_SECONDS:
            self._into_coarse(self._fine.popleft())
        begin = now - self._history_seconds
        for kept in (self._coarse, self._fine):
            while kept and kept[0].at + kept[0].seconds <= begin:
                kept.popleft()

    def _into_coarse(self, fine: model.StatsBucket) -> None:
        at = _wide(fine)
        if not self._coarse or self._coarse[-1].at != at:
            self._coarse.append(model.StatsBucket(at=at, seconds=float(COARSE_SECONDS)))
        last = self._coarse[-1]
        self._coarse[-1] = last.replace(
            arrivals=last.arrivals + fine.arrivals,
            starts=last.starts + fine.starts,
            finished=last.finished + fine.finished,
            wait_seconds=last.wait_seconds + fine.wait_seconds,
            run_seconds=last.run_seconds + fine.run_seconds,
            waits=_added(last.waits, fine.waits),
            runs=_added(last.runs, fine.runs),
        )


def _added(bins: Bins, more: Bins) -> Bins:
    sums = dict(bins)
    for number, n in more:
        sums[number] = sums.get(number, 0) + n
    return tuple(sorted(sums.items()))


def _wide(fine: model.StatsBucket) -> float:
    return fine.at // COARSE_SECONDS * COARSE_SECONDS
