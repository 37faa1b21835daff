"""Target tracking as clouds have it: keep the jobs to a worker near a target, by minutes.

A minute above the target, three times in a row, adds what is missing in proportion; fifteen minutes
below 90 % of it take off what is too much. Nothing else is changed while workers start.
"""

from __future__ import annotations

import math

from sprat.core.record import Record
from sprat.simulation.fleet import SimulatedFleet

LOW_SHARE = 0.9


class Options(Record):
    jobs_per_worker: float = 1.0  # waiting and running
    up_minutes: int = 3
    down_minutes: int = 15


class Tracking:
    poll_seconds = 60.0
    quiet_seconds = math.inf

    def __init__(self, options: Options) -> None:
        self._options = options
        self.settle_seconds = 60.0 * (options.down_minutes + options.up_minutes + 2)
        self._above = self._below = 0

    def poll(self, fleet: SimulatedFleet) -> None:
        jobs, size = fleet.waiting + fleet.busy, fleet.size
        share = jobs / (max(size, 1) * self._options.jobs_per_worker)
        is_idle = not jobs and not size
        self._above = self._above + 1 if share > 1.0 or (jobs and not size) else 0
        self._below = self._below + 1 if share < LOW_SHARE and not is_idle else 0
        wanted = math.ceil(jobs / self._options.jobs_per_worker)
        if self._above >= self._options.up_minutes and not fleet.starting:
            fleet.resize(max(1, wanted))
        elif self._below >= self._options.down_minutes:
            fleet.resize(wanted)
