"""The simulated pool: jobs in the order of their arrival, workers that start, work, idle and leave.

A job is a place in the trace, a worker is a number, so a day of a million jobs fits into a few
arrays. Jobs start in the order of their arrival. A worker is paid from its launch until it leaves;
it takes jobs once its cold start is over; drained, it ends the job that it has and takes no more.
Of several idle workers the one that idled longest takes the next job.
"""

from __future__ import annotations

import math
from array import array
from collections import OrderedDict
from collections.abc import Iterable
from heapq import heappop, heappush

from sprat.core.record import Record
from sprat.simulation.trace import Trace


class Terms(Record):
    """What holds for a fleet whoever sizes it."""

    cold_start_seconds: float = 60.0  # from the launch until the first claim
    min_workers: int = 0
    max_workers: int = 1000  # starting and active; who was drained counts no more
    idle_seconds: float | None = None  # a worker leaves by itself after so long; None: it stays
    max_jobs: int = 0  # a worker leaves after so many; 0: it does not
    on_push: bool = False  # a job that no worker is there for calls for a pass, once a second


class SimulatedFleet:
    """All that is known at `now`. Whoever decides reads the counts, then calls `resize`, or
    `launch` and `drain`."""

    def __init__(self, trace: Trace, terms: Terms) -> None:
        self.terms = terms
        self.jobs = trace.jobs
        self.now = 0.0
        self.arrived = self.started = self.done = 0
        self.waits = array("d", bytes(8 * self.jobs))
        self.finished: list[int] = []  # jobs since somebody emptied it, in the order of their ends
        self.done_at = 0.0  # when the last job ended
        self.paid_seconds = 0.0  # by those that left
        self.ups = self.downs = self.launches = self.peak = 0
        self.changed_at = 0.0  # the last arrival, start or end of anything
        self.arrivals = array("d", trace.arrivals)
        self.arrivals.append(math.inf)
        self.services = trace.services
        self.launched_at: list[float] = []  # of each worker there ever was
        self.starting: OrderedDict[int, float] = OrderedDict()  # worker -> when it is active
        self.idle: OrderedDict[int, float] = OrderedDict()  # worker -> since when, oldest first
        self.running: list[tuple[float, int, int]] = []  # a heap: ends at, worker, job
        self.draining: set[int] = set()  # those of the running that then leave
        self.keeps_idle = False  # whether idle workers wait to be drained, in spite of the terms
        self._served: dict[int, int] = {}
        self._done_sum = self._arrived_sum = 0.0

    # -- what there is ----------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        return self.arrived - self.started

    @property
    def busy(self) -> int:
        """Jobs that run, with a drained worker or not."""
        return len(self.running)

    @property
    def active(self) -> int:
        return len(self.idle) + len(self.running) - len(self.draining)

    @property
    def size(self) -> int:
        return len(self.starting) + self.active

    @property
    def oldest_wait(self) -> float | None:
        return self.now - self.arrivals[self.started] if self.waiting else None

    @property
    def is_over(self) -> bool:
        return self.done == self.jobs and not self.starting and self.size <= self.terms.min_workers

    def load_seconds(self) -> float:
        """Seconds that jobs spent here until now, waiting or running: its slope is the load."""
        return self.now * (self.arrived - self.done) - self._arrived_sum + self._done_sum

    # -- what is done about it ---------------------------------------------------------------------

    def resize(self, target: int) -> None:
        """Launch or retire so many that the fleet has this size, within its bounds."""
        target = min(max(target, self.terms.min_workers), self.terms.max_workers)
        size = self.size
        if target > size:
            self.launch(target - size)
        elif target < size:
            self.drain(self.victims(size - target))

    def launch(self, n: int) -> None:
        n = min(n, self.terms.max_workers - self.size)
        if n <= 0:
            return
        ready_at = self.now + self.terms.cold_start_seconds
        for worker in range(len(self.launched_at), len(self.launched_at) + n):
            self.launched_at.append(self.now)
            self.starting[worker] = ready_at
        self.ups += 1
        self.launches += n
        self.peak = max(self.peak, self.size)

    def victims(self, n: int) -> list[int]:
        """Launches that have not arrived, then the idle, then the busy; of equals the latest."""
        chosen = sorted(self.starting, reverse=True)[:n]
        if len(chosen) < n:
            chosen += sorted(self.idle, reverse=True)[: n - len(chosen)]
        if len(chosen) < n:
            busy = {worker for _, worker, _ in self.running} - self.draining
            chosen += sorted(busy, reverse=True)[: n - len(chosen)]
        return chosen

    def drain(self, workers: Iterable[int]) -> None:
        """Have them leave: at once, or when their job is done."""
        busy: set[int] | None = None
        n = 0
        for worker in workers:
            n += 1
            if worker in self.starting or worker in self.idle:
                self.starting.pop(worker, None)
                self.idle.pop(worker, None)
                self._leave(worker)
                continue
            if busy is None:
                busy = {one for _, one, _ in self.running}
            if worker in busy:
                self.draining.add(worker)
        self.downs += n > 0

    def _leave(self, worker: int) -> None:
        self.paid_seconds += self.now - self.launched_at[worker]

    # -- what happens ------------------------------------------------------------------------------

    def advance(self, until: float, trigger_at: float = math.inf) -> float:
        """Let happen what happens up to `until`, or until a job calls for a pass, which it may do
        from `trigger_at` on; the moment that was reached. At one moment ends come first, then
        workers that become active, then arrivals."""
        arrivals, services, waits = self.arrivals, self.services, self.waits
        running, idle, starting = self.running, self.idle, self.starting
        arrived, started = self.arrived, self.started
        ready_at = self._first(starting)
        leave_at = self._next_exit()
        while True:
            at = arrivals[arrived]
            if running and running[0][0] <= at:
                at = running[0][0]
            at = min(at, ready_at, leave_at)
            if at > until:
                break
            self.now = self.changed_at = at
            if running and running[0][0] == at:
                _, worker, job = heappop(running)
                self.finished.append(job)
                self.done_at = at
                self._done_sum += at
                if self._is_last_job(worker):
                    self._leave(worker)
                    continue
            elif ready_at == at:
                worker, _ = starting.popitem(last=False)
                ready_at = self._first(starting)
            elif leave_at == at:
                self._exit_or_stay()
                leave_at = self._next_exit()
                continue
            else:
                arrived += 1
                self._arrived_sum += at
                if not idle:
                    if arrived - started > len(starting):
                        until = min(until, max(at, trigger_at))
                    continue
                worker, _ = idle.popitem(last=False)
                leave_at = self._next_exit()
            if started < arrived:
                waits[started] = at - arrivals[started]
                heappush(running, (at + services[started], worker, started))
                started += 1
            else:
                idle[worker] = at
                leave_at = self._next_exit()
        self.arrived, self.started = arrived, started
        self.done = started - len(running)
        self.now = until
        return until

    def next_event(self) -> float:
        ends = self.running[0][0] if self.running else math.inf
        return min(self.arrivals[self.arrived], ends, self._first(self.starting), self._next_exit())

    @staticmethod
    def _first(workers: OrderedDict[int, float]) -> float:
        return next(iter(workers.values()), math.inf)

    def _next_exit(self) -> float:
        if self.terms.idle_seconds is None or self.keeps_idle or not self.idle:
            return math.inf
        # Not before now: it may have been kept until a moment ago.
        return max(self.now, self._first(self.idle) + self.terms.idle_seconds)

    def _exit_or_stay(self) -> None:
        """Somebody was idle for too long: it leaves, unless the fleet would be too small."""
        worker, _ = self.idle.popitem(last=False)
        if self.active >= self.terms.min_workers:
            self._leave(worker)
        else:
            self.idle[worker] = self.now + max(0.0, 1.0 - (self.terms.idle_seconds or 0.0))

    def _is_last_job(self, worker: int) -> bool:
        if worker in self.draining:
            self.draining.discard(worker)
            return True
        if not self.terms.max_jobs:
            return False
        self._served[worker] = self._served.get(worker, 0) + 1
        return self._served[worker] >= self.terms.max_jobs
