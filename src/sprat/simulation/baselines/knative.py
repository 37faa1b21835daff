"""Knative's pod autoscaler (KPA), on concurrency: jobs in the system, waiting or running.

Every 2 s it takes their average over 60 s, and over the last 6 s; that, divided by the target to a
worker, is the size. When the short window asks for twice what is ready it panics: for the next 60 s
the fleet only grows. It shrinks by half at most, and to nothing 30 s after it could.
"""

from __future__ import annotations

import math
from collections import deque

from sprat.core.record import Record
from sprat.simulation.fleet import SimulatedFleet

TICK_SECONDS = 2.0
MAX_UP_RATE = 1000.0
MAX_DOWN_RATE = 2.0


class Options(Record):
    target: float = 0.7  # 70 % of the one job that a worker takes at a time
    stable_seconds: float = 60.0
    panic_percent: float = 10.0  # the short window, of the long one
    panic_threshold: float = 2.0
    grace_seconds: float = 30.0  # before the last one goes


class Knative:
    poll_seconds = TICK_SECONDS
    quiet_seconds = math.inf

    def __init__(self, options: Options) -> None:
        self._options = options
        self._stable = SlidingAverage(options.stable_seconds)
        self._panic = SlidingAverage(options.stable_seconds * options.panic_percent / 100.0)
        self.settle_seconds = 2.0 * options.stable_seconds + options.grace_seconds + 10.0
        self._panic_at: float | None = None
        self._most_in_panic = 0
        self._zero_at: float | None = None

    def poll(self, fleet: SimulatedFleet) -> None:
        if not fleet.size and fleet.arrived == fleet.done:
            self._stable.clear()
            self._panic.clear()
            self._panic_at = None
            self._most_in_panic = 0
        load, jobs = fleet.load_seconds(), fleet.arrived - fleet.done
        stable = self._stable.average(fleet.now, load, jobs)
        panic = self._panic.average(fleet.now, load, jobs)
        fleet.resize(
            self._to_zero(fleet.now, self._desired(fleet.now, fleet.active, stable, panic))
        )

    def _desired(self, now: float, ready: int, stable: float, panic: float) -> int:
        ready = max(1, ready)
        high, low = math.ceil(MAX_UP_RATE * ready), math.floor(ready / MAX_DOWN_RATE)
        by_stable = math.ceil(stable / self._options.target - 1e-9)
        by_panic = math.ceil(panic / self._options.target - 1e-9)
        is_over = by_panic / ready >= self._options.panic_threshold
        if is_over:
            self._panic_at = now
        elif self._panic_at is not None and self._panic_at + self._options.stable_seconds < now:
            self._panic_at = None
            self._most_in_panic = 0
        desired = min(max(by_stable, low), high)
        if self._panic_at is None:
            return desired
        self._most_in_panic = max(self._most_in_panic, desired, min(max(by_panic, low), high))
        return self._most_in_panic

    def _to_zero(self, now: float, desired: int) -> int:
        if desired:
            self._zero_at = None
            return desired
        if self._zero_at is None:
            self._zero_at = now
        return 0 if now >= self._zero_at + self._options.grace_seconds else 1


class SlidingAverage:
    """The average slope of a growing sum over the last seconds, or since there is one."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: deque[tuple[float, float]] = deque()

    def clear(self) -> None:
        self._seen.clear()

    def average(self, now: float, total: float, slope: float) -> float:
        """`slope` is what it is at this moment: the answer as long as there is no other."""
        seen, begin = self._seen, now - self._seconds
        seen.append((now, total))
        while len(seen) > 1 and seen[1][0] <= begin:
            seen.popleft()
        if len(seen) == 1:
            return slope
        (at, first), (next_at, second) = seen[0], seen[1]
        if at < begin:
            first += (second - first) * (begin - at) / (next_at - at)
            at = begin
        return (total - first) / (now - at)
