"""KEDA with the Kubernetes horizontal pod autoscaler (HPA), on the length of a queue.

KEDA looks every 30 s whether there is work: it raises an empty fleet to one, and takes the last
ones away when there was no work for the cooldown. In between the HPA decides every 15 s on
ceil(length / target), unless that is within 10 % of what there is. It at most doubles, or adds
four, in 15 s, and shrinks to the largest size that it wanted in the last 300 s.
"""

from __future__ import annotations

import math
from collections import deque

from sprat.core.record import Record
from sprat.simulation.fleet import SimulatedFleet

SYNC_SECONDS = 15.0
KEDA_POLLING_SECONDS = 30.0
TOLERANCE = 0.1
UP_PERCENT = 100.0
UP_PODS = 4


class Options(Record):
    target: float = 5.0  # queue length to a worker: the default of most scalers
    counts_running: bool = True  # as for SQS and RabbitMQ; a Redis list has only what waits
    stabilisation_seconds: float = 300.0
    cooldown_seconds: float = 300.0


class Keda:
    poll_seconds = SYNC_SECONDS

    def __init__(self, options: Options) -> None:
        self._options = options
        self.settle_seconds = options.stabilisation_seconds + options.cooldown_seconds + 60.0
        self.quiet_seconds = math.inf
        self._wanted: deque[tuple[float, int]] = deque()  # descending: its first is the maximum
        self._active_at = -math.inf

    def poll(self, fleet: SimulatedFleet) -> None:
        length = fleet.waiting + (fleet.busy if self._options.counts_running else 0)
        size = fleet.size
        if fleet.now % KEDA_POLLING_SECONDS == 0:
            size = self._activate(fleet, length, size)
        if size:
            fleet.resize(self._hpa(fleet.now, length, size))

    def _activate(self, fleet: SimulatedFleet, length: int, size: int) -> int:
        """From nothing to one, and back; the size after that."""
        if length:
            self._active_at = fleet.now
            if not size:
                self._wanted.clear()
                return 1
        elif size and fleet.now > self._active_at + self._options.cooldown_seconds:
            fleet.resize(0)
            return 0
        return size

    def _hpa(self, now: float, length: int, size: int) -> int:
        desired = wanted(length, self._options.target, size)
        highest = self._highest(now, desired)
        if desired > size:
            return min(desired, up_limit(size))  # a sync each period: all of it is left
        return min(size, highest)

    def _highest(self, now: float, desired: int) -> int:
        """The largest size wanted within the stabilisation window."""
        while self._wanted and self._wanted[-1][1] <= desired:
            self._wanted.pop()
        self._wanted.append((now, desired))
        while self._wanted[0][0] < now - self._options.stabilisation_seconds:
            self._wanted.popleft()
        return self._wanted[0][1]


def wanted(length: int, target: float, size: int) -> int:
    """What the metric alone asks for; at least one."""
    if abs(length / (target * size) - 1.0) <= TOLERANCE:
        return size
    return max(1, math.ceil(length / target))


def up_limit(size: int) -> int:
    """The most that there may be 15 s from now."""
    return max(math.ceil(size * (1.0 + UP_PERCENT / 100.0)), size + UP_PODS)
