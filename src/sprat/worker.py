"""A worker: claims items, runs the job on each, settles, and leaves when there is nothing to do.

One loop serves both kinds: with `max_jobs=1` a worker takes one item and leaves, with 0 it goes on
until it is told to stop or has been idle for too long. The settlement of one job rides on the claim
of the next: one write a job, or one for many tiny jobs (see ahead.py). Heartbeats go on beside the
job: from this loop while it runs in a child, from a thread (see pulse.py) while it runs here.

SIGTERM and SIGINT drain: the job is finished, then the worker leaves. A second one hands the job
back at once. A worker that lost its lease, or cannot reach the store for as long as its lease
lasts, stops its job: by then somebody else may have it.
"""

from __future__ import annotations

import os
import time

from sprat import model
from sprat.ahead import LET_GO_SECONDS, Ahead
from sprat.errors import StoreUnavailable
from sprat.job import Job, Stopped
from sprat.processor import Outcome, attempt, settlement
from sprat.record import Record
from sprat.signals import Signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from sprat.processor import Processor
    from sprat.pulse import Pulse
    from sprat.store import Store

    T = TypeVar("T")

LOOK_UP_SECONDS = 0.5  # an idle worker notices a signal within this
STORE_RETRY_SECONDS = 0.2
SAFE_PART_OF_LEASE = 0.8  # without a heartbeat for this part of its lease, a worker stops

NO_WORK = "no_work_available"
ENOUGH = "max_jobs"
IDLE = "idle"
TOLD_TO = "told to leave"
LOST = "lost"


class Report(Record):
    """What a worker did, and why it left."""

    worker_id: str
    jobs: int = 0
    failed: int = 0
    left: str


class Worker:
    """One registered worker of one pool. `run` is all there is to it."""

    def __init__(
        self,
        store: Store,
        pool: str,
        processor: Processor,
        *,
        settings: model.PoolSettings,
        worker_id: str,
        reserved: bool = False,
        capabilities: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self._store = store
        self._pool = store.pool(pool)
        self._processor = processor
        self._settings = settings
        self._lease = 2 * settings.heartbeat_seconds
        self._registration = model.WorkerRegistration(
            worker_id=worker_id,
            pool_id=pool,
            # Two containers may share a host's name, and both be its process 1.
            host=(metadata or {}).get("place") or os.uname().nodename,
            pid=os.getpid(),
            lease_seconds=self._lease,
            reserved=reserved,
            capabilities=tuple(capabilities),
            metadata=metadata or {},
        )
        here = settings.isolation == "none"
        self._ahead = Ahead(settings.claim_ahead if here else 1)
        self._pulse: Pulse | None = None
        self._current: model.WorkItem | None = None  # the job that the pulse beats beside
        self._stop_job: Callable[[], None] = lambda: None
        self._signals = 0
        self._status = model.ACTIVE
        self._heard_at = time.monotonic()  # the lease lasts at least from here
        self._idle_since = time.monotonic()
        self._jobs = 0
        self._failed = 0

    # -- the loop ---------------------------------------------------------------------------

    def run(self) -> Report:
        """Work until there is a reason to leave, and leave."""
        with Signals(self._on_signal):
            self._heard_at = self._idle_since = time.monotonic()
            self._me = self._store.workers.register(self._registration)
            if self._me.status != model.ACTIVE:  # the place was given up, or is another's
                return self._report(TOLD_TO)
            try:
                left = self._work()
            finally:
                if self._pulse:
                    self._pulse.end()
            if left != LOST:
                self._leave(left)
            return self._report(left)

    def _work(self) -> str:
        while True:
            if self._is_told_to_leave():
                return TOLD_TO
            if self._status != model.ACTIVE:
                return LOST
            item = self._next()
            if item is not None:
                if (settled := self._process(item)) is not None:
                    self._ahead.settle(settled)
                self._jobs += 1
                if self._jobs == self._settings.max_jobs:
                    return TOLD_TO if self._is_told_to_leave() else ENOUGH
                self._idle_since = time.monotonic()
            elif self._status != model.ACTIVE:
                continue
            elif self._settings.max_jobs == 1:
                return NO_WORK
            elif not self._wait():
                return IDLE

    def _is_told_to_leave(self) -> bool:
        return self._signals > 0 or self._status == model.TERMINATING

    def _next(self) -> model.WorkItem | None:
        """The next item taken ahead, or settle what is done and claim more, in one step."""
        if (item := self._ahead.next()) is not None:
            return item
        settlements = self._ahead.take()
        room = self._settings.max_jobs - self._jobs if self._settings.max_jobs else None
        size = self._ahead.size(room)
        asked_at = time.monotonic()
        answer = self._persist(
            lambda: self._pool.exchange(self._me, settlements=settlements, claim=size)
        )
        if answer is None:
            self._ahead.restore(settlements)
            return None
        if settlements and not answer.items:
            self._happened(model.POOL_EMPTY)
        # A claim renews a lease of which less than half is left: half of it we have now.
        self._heard_at = max(self._heard_at, asked_at - self._lease / 2)
        item = self._ahead.begin(answer.items)
        if self._ahead and self._pulse:
            self._pulse.hurry(LET_GO_SECONDS)
        return item

    def _wait(self) -> bool:
        """Sleep until there may be work; False when this worker has been idle for too long."""
        try:
            left = self._idle_since + self._settings.idle_seconds - time.monotonic()
            if left <= 0:
                self._idle_since = time.monotonic()
                return self._is_needed()
            has_work = self._sleep(min(left, LOOK_UP_SECONDS))
            if not has_work and self._is_time_for_a_heartbeat():
                self._heartbeat(())  # with work the claim comes first: it is a sign of life too
        except StoreUnavailable:
            self._outlast()
        return True

    def _sleep(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        if self._pool.wait(self._me, seconds=seconds):
            return True
        if time.monotonic() < end:
            self._heartbeat(())  # woken without work: it has to leave
        return False

    def _is_needed(self) -> bool:
        from sprat import scale_set

        return scale_set.is_needed(self._store, self._pool.name, self._settings, self._me)

    def _leave(self, left: str) -> None:
        settlements = self._ahead.take_all()
        if settlements:
            self._persist(lambda: self._pool.settle_many(settlements))
            self._happened(model.POOL_EMPTY)
        end = self._store.workers.update_status
        self._persist(lambda: end(self._me, model.TERMINATED, reason=left))
        if left != TOLD_TO:  # who wanted it gone does not want it back
            self._happened(model.WORKER_DONE)

    def _happened(self, event: str) -> None:
        self._store.happened(event, self._pool.name, self._settings)

    def _report(self, left: str) -> Report:
        worker_id = self._registration.worker_id
        return Report(worker_id=worker_id, jobs=self._jobs, failed=self._failed, left=left)

    # -- one job ----------------------------------------------------------------------------

    def _process(self, item: model.WorkItem) -> model.Settlement | None:
        """Run the job; its settlement, or None when the claim was lost meanwhile."""
        if self._settings.isolation == "process":
            outcome, seconds = self._in_a_child(item), None
        else:
            began = time.monotonic()
            outcome, seconds = self._here(item), time.monotonic() - began
        if outcome is None:
            return None
        self._failed += not outcome.ok
        if outcome.throttled:
            self._persist(lambda: self._pool.hold_off(outcome.delay_seconds or 0.0))
        return settlement(item, outcome, self._settings, seconds)

    def _in_a_child(self, item: model.WorkItem) -> Outcome | None:
        from sprat.child import Child  # here: a job that runs in the worker has none

        job = Job(self._pool, item)
        child = Child(lambda: attempt(self._processor, job))
        limit = self._settings.timeout_seconds
        end = None if limit is None else time.monotonic() + limit
        while True:
            pause = min(self._until_heartbeat(), LOOK_UP_SECONDS)
            if end is not None:
                pause = min(pause, end - time.monotonic())
            outcome = child.wait(max(0.0, pause))
            if outcome is not None:
                return outcome
            if end is not None and time.monotonic() >= end:
                child.kill()
                return Outcome(ok=False, error=f"stopped after its {limit:g} seconds were over")
            if self._signals > 1:
                child.kill()
                self._hand_back(item)
                return None
            if self._is_time_for_a_heartbeat() and not self._still_holds(item):
                child.kill()
                return None

    def _here(self, item: model.WorkItem) -> Outcome | None:
        pulse = self._pulse or self._start_pulse()
        job = Job(self._pool, item, lambda: pulse.stopped)
        self._current = item
        try:
            pulse.begin()
            outcome = attempt(self._processor, job)
            pulse.finish()
            return outcome
        except Stopped as why:
            pulse.finish()
            if str(why):
                return Outcome(ok=False, error=str(why))
            if self._signals > 1:
                self._hand_back(item)
            return None
        finally:
            self._current = None

    def _start_pulse(self) -> Pulse:
        from sprat.pulse import Pulse  # threads: paid for only by those who use them

        pulse = self._pulse = Pulse(
            self._beat, pause=self._until_beat, timeout=self._settings.timeout_seconds
        )
        self._stop_job = pulse.stop_now
        pulse.start()
        return pulse

    def _until_beat(self) -> float:
        return min(self._until_heartbeat(), LET_GO_SECONDS if self._ahead else self._lease)

    def _beat(self) -> bool:
        """Beside a job: settle what is done, hand back what waits for it, and stay alive."""
        if self._ahead:
            self._let_go()
        item = self._current
        return item is None or not self._is_time_for_a_heartbeat() or self._still_holds(item)

    def _let_go(self) -> None:
        settlements = self._ahead.take_all()
        try:
            self._pool.settle_many(settlements)
        except StoreUnavailable:
            self._ahead.restore(settlements)

    def _hand_back(self, item: model.WorkItem) -> None:
        self._persist(lambda: self._pool.hand_back(item))

    # -- signs of life ----------------------------------------------------------------------

    def _still_holds(self, item: model.WorkItem) -> bool:
        """Send a heartbeat; False when the item is no longer ours, or may no longer be."""
        try:
            return item.id not in self._heartbeat((item,))
        except StoreUnavailable:
            if time.monotonic() - self._heard_at < SAFE_PART_OF_LEASE * self._lease:
                return True
            self._status = LOST
            return False

    def _heartbeat(self, holding: tuple[model.WorkItem, ...]) -> tuple[str, ...]:
        answer = self._store.workers.heartbeat(self._me, holding=holding)
        self._heard_at = time.monotonic()
        self._status = answer.status
        return answer.lost

    def _until_heartbeat(self) -> float:
        """Soon, when it is overdue: the store did not answer, or only claims renewed the lease."""
        due = self._heard_at + self._settings.heartbeat_seconds - time.monotonic()
        return max(due, STORE_RETRY_SECONDS)

    def _is_time_for_a_heartbeat(self) -> bool:
        return time.monotonic() - self._heard_at >= self._settings.heartbeat_seconds

    def _persist(self, step: Callable[[], T]) -> T | None:
        """Repeat a step while the store cannot be reached, for as long as the lease lasts."""
        while True:
            try:
                return step()
            except StoreUnavailable:
                if not self._outlast():
                    return None

    def _outlast(self) -> bool:
        """Pause after an error of the store; False when the lease may have ended meanwhile."""
        if time.monotonic() - self._heard_at >= self._lease:
            self._status = LOST
            return False
        time.sleep(STORE_RETRY_SECONDS)
        return True

    def _on_signal(self) -> None:
        self._signals += 1
        if self._signals > 1:
            self._stop_job()
