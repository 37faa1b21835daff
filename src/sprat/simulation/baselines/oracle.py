"""Somebody who knows the future: which jobs come, when, and how long each will run.

Jobs are placed in the order of their arrival on the worker whose free moment would expire first; a
worker is launched ahead only where nobody will be free in time, and is ready when the job comes, or
later, so that work piles up for it. Nobody idles for longer than a new launch would cost, and one
job in twenty may be late where that saves a launch. Of several such schedules the cheapest counts.

No real policy can do that: it shows how much there is left to gain. It is the best of a few greedy
schedules, not a proven optimum.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from sprat.core.record import Record
from sprat.simulation.replay import ReplayResult, summary
from sprat.simulation.trace import Trace

LATE_SHARE = 0.05
# Schedules to try: the share of a cold start for which a worker may idle and be chosen before one
# that is still busy, and the share of the wait target after which a new worker is ready.
TRIED = ((0.1, 0.0), (0.0, 0.0), (0.0, 0.5), (0.0, 0.9))


class Options(Record):
    wait_seconds: float = 60.0


def foresee(
    trace: Trace, wait_seconds: float, cold_start_seconds: float, max_workers: int
) -> ReplayResult:
    """The cheapest schedule that meets the target, or else the cheapest."""
    plans = [
        _follow(Schedule(wait_seconds, cold_start_seconds, max_workers, *shares), trace)
        for shares in TRIED
    ]
    return min(plans, key=lambda seen: (not seen.is_met, seen.paid_seconds))


def _follow(plan: Schedule, trace: Trace) -> ReplayResult:
    waits = [plan.place(a, s) for a, s in zip(trace.arrivals, trace.services, strict=True)]
    return summary(
        waits,
        policy="oracle",
        trace=trace.name,
        useful_seconds=trace.useful_seconds,
        paid_seconds=plan.paid_seconds,
        wait_target=plan.wait,
        ups=plan.launches,
        launches=plan.launches,
        peak_workers=plan.peak,
        seconds=plan.end,
    )


class Schedule:
    """Workers by the moment at which they are free again."""

    def __init__(
        self, wait: float, cold_start: float, max_workers: int, idling: float, patience: float
    ) -> None:
        self.wait, self._cold, self._most = wait, cold_start, max_workers
        self._idling, self._patience = idling * cold_start, patience * wait
        self._free: list[float] = []
        self._jobs = self._late = 0
        self.paid_seconds = self.end = 0.0
        self.launches = self.peak = 0

    def place(self, arrival: float, service: float) -> float:
        """Give a job its worker; how long it waits."""
        self._jobs += 1
        self.retire(arrival - self._cold)
        start = self._reuse(arrival)
        if start is None:
            start = self._be_late(arrival)
        if start is None:
            start = self._launch(arrival)
        self._late += start > arrival + self.wait
        self.paid_seconds += service
        self.end = max(self.end, start + service)
        insort(self._free, start + service)
        return start - arrival

    def retire(self, before: float) -> None:
        """Whoever idled so long has left when its last job was done."""
        del self._free[: bisect_left(self._free, before)]

    def _reuse(self, arrival: float) -> float | None:
        """Somebody free in time: the one that would go to waste first, but who idled for long
        only if there is nobody else."""
        free = self._free
        last = bisect_right(free, arrival + self.wait)
        if not last:
            return None
        first = bisect_left(free, arrival - self._idling)
        return self._take(first if first < last else last - 1, arrival)

    def _be_late(self, arrival: float) -> float | None:
        may_be = self._late + 1 <= LATE_SHARE * self._jobs or len(self._free) >= self._most
        return self._take(0, arrival) if self._free and may_be else None

    def _take(self, place: int, arrival: float) -> float:
        since = self._free.pop(place)
        self.paid_seconds += max(0.0, arrival - since)
        return max(arrival, since)

    def _launch(self, arrival: float) -> float:
        self.launches += 1
        self.peak = max(self.peak, len(self._free) + 1)
        self.paid_seconds += self._cold
        return max(arrival + self._patience, self._cold)
