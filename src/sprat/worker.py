"""A worker: claims items, runs the job on each, settles, and leaves when there is nothing to do.

One loop serves both kinds: with `max_jobs=1` a worker takes one item and leaves, with 0 it goes on
until it is told to stop or has been idle for too long. The settlement of one job rides on the claim
of the next: one write a job. Heartbeats go on beside the job: from this loop while the job runs in
a child, from a thread (see pulse.py) while it runs here.

SIGTERM and SIGINT drain: the job is finished, then the worker leaves. A second one hands the job
back at once. A worker that lost its lease, or cannot reach the store for as long as its lease
lasts, stops its job: by then somebody else may have it.
"""

from __future__ import annotations

import os
import time

from sprat import model, payload, retry
from sprat.child import Child
from sprat.errors import StoreUnavailable
from sprat.job import Job
from sprat.processor import Outcome, attempt
from sprat.record import Record
from sprat.signals import Signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

    from sprat.processor import Processor
    from sprat.store import Store

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
    ) -> None:
        self._store = store
        self._pool = store.pool(pool)
        self._processor = processor
        self._settings = settings
        self._lease = 2 * settings.heartbeat_seconds
        self._registration = model.WorkerRegistration(
            worker_id=worker_id,
            pool_id=pool,
            host=_host(),
            pid=os.getpid(),
            lease_seconds=self._lease,
            reserved=reserved,
        )
        self._stop_job: Callable[[], None] = lambda: None
        self._signals = 0
        self._status = model.ACTIVE
        self._heard_at = time.monotonic()  # the lease lasts at least from here
        self._idle_since = time.monotonic()
        self._settlement: model.Settlement | None = None
        self._jobs = 0
        self._failed = 0

    # -- the loop ---------------------------------------------------------------------------

    def run(self) -> Report:
        """Work until there is a reason to leave, and leave."""
        with Signals(self._on_signal):
            self._heard_at = self._idle_since = time.monotonic()
            self._me = self._store.workers.register(self._registration)
            left = self._work() if self._me.status == model.ACTIVE else TOLD_TO
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
                self._settlement = self._process(item)
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
        """Settle the last job and claim the next, in one step."""
        settlements = () if self._settlement is None else (self._settlement,)
        asked_at = time.monotonic()
        answer = self._persist(
            lambda: self._pool.exchange(self._me, settlements=settlements, claim=1)
        )
        self._settlement = None
        if answer is None:
            return None
        if settlements and not answer.items:
            self._happened(model.POOL_EMPTY)
        # A claim renews a lease of which less than half is left: half of it we have now.
        self._heard_at = max(self._heard_at, asked_at - self._lease / 2)
        return answer.items[0] if answer.items else None

    def _wait(self) -> bool:
        """Sleep until there may be work; False when this worker has been idle for too long."""
        try:
            left = self._idle_since + self._settings.idle_seconds - time.monotonic()
            if left <= 0:
                self._idle_since = time.monotonic()
                return self._is_needed()
            self._sleep(min(left, LOOK_UP_SECONDS))
            if self._is_time_for_a_heartbeat():
                self._heartbeat(())
        except StoreUnavailable:
            self._outlast()
        return True

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        if not self._pool.wait(self._me, seconds=seconds) and time.monotonic() < end:
            self._heartbeat(())  # woken without work: it has to leave

    def _is_needed(self) -> bool:
        """Whether the fleet would be too small without this worker."""
        low = self._settings.min_workers
        if self._settings.policy == model.PoolSettings().policy:
            return low > 0 and self._pool.observe().active <= low
        from sprat.scaling import policies  # others keep idle workers on purpose: ask

        decision = policies.decide(self._pool.observe(), self._settings)
        return self._me.worker_id not in decision.drain

    def _leave(self, left: str) -> None:
        settlement = self._settlement
        if settlement is not None:
            self._persist(lambda: self._pool.settle_many([settlement]))
            self._happened(model.POOL_EMPTY)
        self._persist(
            lambda: self._store.workers.update_status(self._me, model.TERMINATED, reason=left)
        )
        if left != TOLD_TO:  # who wanted it gone does not want it back
            self._happened(model.WORKER_DONE)

    def _happened(self, event: str) -> None:
        self._store.happened(event, self._pool.name, self._settings)

    def _report(self, left: str) -> Report:
        return Report(
            worker_id=self._registration.worker_id,
            jobs=self._jobs,
            failed=self._failed,
            left=left,
        )

    # -- one job ----------------------------------------------------------------------------

    def _process(self, item: model.WorkItem) -> model.Settlement | None:
        """Run the job; its settlement, or None when the claim was lost meanwhile."""
        if self._settings.isolation == "process":
            outcome = self._in_a_child(item)
        else:
            outcome = self._here(item)
        if outcome is None:
            return None
        return self._settle(item, outcome)

    def _settle(self, item: model.WorkItem, outcome: Outcome) -> model.Settlement:
        ref = (item.id, item.token)
        if outcome.ok:
            return model.Settlement.of((*ref, model.COMPLETE, outcome.result, None, 0.0, None))
        self._failed += 1
        kind = model.POISON if outcome.poison else model.FAIL
        kind = model.TRANSIENT if outcome.transient else kind
        delay = outcome.delay_seconds
        if delay is None:
            delay = retry.backoff(
                item.attempts + item.given_back,
                base=self._settings.retry_base_seconds,
                cap=self._settings.retry_cap_seconds,
                jitter=int.from_bytes(os.urandom(4)) / (1 << 32),
            )
        error = payload.error_text(outcome.error)
        return model.Settlement.of((*ref, kind, None, error, delay, None))

    def _in_a_child(self, item: model.WorkItem) -> Outcome | None:
        child = Child(self._processor, Job(self._pool, item))
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
        from sprat.pulse import Pulse, Stopped  # threads: paid for only by those who use them

        pulse = Pulse(
            lambda: self._still_holds(item),
            pause=self._until_heartbeat,
            timeout=self._settings.timeout_seconds,
        )
        try:
            self._stop_job = pulse.stop_now
            with pulse:
                return attempt(self._processor, Job(self._pool, item, lambda: pulse.stopped))
        except Stopped as why:
            pulse.end()
            if str(why):
                return Outcome(ok=False, error=str(why))
            if self._signals > 1:
                self._hand_back(item)
            return None

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


def _host() -> str:
    """`socket.gethostname()`, without its 4 ms of imports."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
