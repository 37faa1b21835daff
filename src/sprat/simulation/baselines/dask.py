"""Dask's adaptive deployments: so many workers that what is known of the work is done in a while.

Every second: ceil(expected seconds of all work / target duration), never more than jobs. Too few
are made up for at once; of too many the idle ones go, after three such recommendations in a row.
"""

from __future__ import annotations

import math

from sprat.core.record import Record
from sprat.simulation.fleet import SimulatedFleet

UNKNOWN_SECONDS = 0.5  # a job is expected to take so long while none has ended


class Options(Record):
    target_seconds: float = 5.0
    wait_count: int = 3


class Dask:
    poll_seconds = 1.0
    quiet_seconds = math.inf

    def __init__(self, options: Options) -> None:
        self._options = options
        self.settle_seconds = options.wait_count + 2.0
        self._mean: float | None = None
        self._closing: dict[int, int] = {}  # worker -> how often in a row it could have gone

    def poll(self, fleet: SimulatedFleet) -> None:
        self._learn(fleet)
        size = fleet.size
        target = self.target(fleet)
        if target >= size:
            self._closing.clear()
            fleet.resize(target)
            return
        surplus = list(fleet.starting)[: size - target]
        if target < size - len(surplus):
            surplus += fleet.idle
        self._closing = {worker: self._closing.get(worker, 0) + 1 for worker in surplus}
        fleet.drain([w for w, n in self._closing.items() if n >= self._options.wait_count])

    def target(self, fleet: SimulatedFleet) -> int:
        mean = UNKNOWN_SECONDS if self._mean is None else self._mean
        jobs = fleet.waiting + fleet.busy
        wanted = min(jobs, math.ceil(jobs * mean / self._options.target_seconds))
        if fleet.waiting and not fleet.active:
            wanted = max(1, wanted)
        return wanted if wanted >= fleet.active else fleet.active - len(fleet.idle)

    def _learn(self, fleet: SimulatedFleet) -> None:
        for job in fleet.finished:
            seconds = fleet.services[job]
            self._mean = seconds if self._mean is None else 0.5 * (seconds + self._mean)
        fleet.finished.clear()
