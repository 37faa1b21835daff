"""What happened over time in a replay, in a few hundred points: for pictures."""

from __future__ import annotations

from collections.abc import Sequence

from sprat.core.record import Record
from sprat.simulation.fleet import SimulatedFleet
from sprat.simulation.trace import Trace

POINTS = 400


class Point(Record):
    at: float
    waiting: int  # the most since the point before
    workers: int


class Timeline:
    """Collects points while a trace is replayed: `watch=story.watch`."""

    def __init__(self, name: str, trace: Trace) -> None:
        self.name = name
        self.points: list[Point] = []
        self._step = max(trace.span_seconds, 1.0) / POINTS
        self._next = 0.0
        self._waiting = self._workers = 0

    def watch(self, fleet: SimulatedFleet) -> None:
        self._waiting = max(self._waiting, fleet.waiting)
        self._workers = max(self._workers, fleet.size)
        if fleet.now >= self._next:
            self.points.append(Point(at=fleet.now, waiting=self._waiting, workers=self._workers))
            self._next = fleet.now + self._step
            self._waiting = self._workers = 0


def arrivals_per_minute(trace: Trace, columns: int = POINTS // 4) -> Sequence[tuple[float, float]]:
    """Begin and rate of stretches of equal length."""
    width = max(trace.span_seconds, 1.0) / columns
    counts = [0] * columns
    for arrival in trace.arrivals:
        counts[min(columns - 1, int(arrival / width))] += 1
    return [(n * width, 60.0 * count / width) for n, count in enumerate(counts)]
