"""A worker: claims items, runs the job on each, settles, and leaves when there is nothing to do.

One loop serves both kinds: with `max_jobs=1` a worker takes one item and leaves, with 0 it goes on
until it is told to stop or has been idle for too long. The settlement of one job rides on the claim
of the next: one write per job, or one for many tiny jobs (see prefetch.py). attempt.py runs the
job. While the store cannot be reached the job goes on, and the worker tries again (membership.py).

Before a claim the worker looks whether the files of its functions are those that it imported, and
with the claim whether the pool's settings are those that it started with. If not, it leaves, and is
replaced by one with the new code.

SIGTERM and SIGINT drain: the job is finished, then the worker leaves. A second one hands the job
back at once.
"""

from __future__ import annotations

from sprat.core import extensions, model
from sprat.core.errors import StoreUnavailable
from sprat.core.record import Record
from sprat.core.runtime import runtime
from sprat.worker.attempt import Attempts
from sprat.worker.membership import RETRY_SECONDS, Membership, registration
from sprat.worker.prefetch import Prefetch
from sprat.worker.processor import settlement
from sprat.worker.signals import Signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from sprat.store.store import Store
    from sprat.worker.observer import WorkerObserver
    from sprat.worker.processor import Outcome, Processor

LOOK_UP_SECONDS = 0.5  # an idle worker notices a signal within this
# Files that were looked at this long ago are looked at again: before a claim, and after it, because
# a file may be edited and a job pushed while the claim waits. A push takes longer than the second.
CHANGE_SECONDS = 0.005
CLAIM_SECONDS = 0.001
THROTTLED_IN_A_ROW = 3  # answers 429 before the whole pool pauses
STAY_SECONDS = 30.0  # workers wait for the end of a pause that is not longer than this

NO_WORK = "no_work_available"
ENOUGH = "max_jobs"
IDLE = "idle"
TOLD_TO = "told to leave"
CHANGED = "code or settings changed"
LOST = "lost"


class WorkerReport(Record):
    """What a worker did, and why it left. `refused` counts results that came too late."""

    worker_id: str
    jobs: int = 0
    failed: int = 0
    refused: int = 0
    left: str

    def added_to(self, before: WorkerReport) -> WorkerReport:
        """The report of a process that was several workers in turn."""
        return self.replace(
            jobs=before.jobs + self.jobs,
            failed=before.failed + self.failed,
            refused=before.refused + self.refused,
        )


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
        version: int | None = None,
        reserved: bool = False,
        capabilities: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        observers: Sequence[WorkerObserver] = (),
    ) -> None:
        """`version` is that of the settings; None: the worker does not look for changes. The
        observers are called in their order."""
        self._store = store
        self._pool = store.pool(pool)
        self._processor = processor
        self._settings = settings
        self._version = version
        self._observers = tuple(observers)
        self._membership = Membership(
            store,
            registration(
                worker_id,
                pool,
                settings.heartbeat_seconds,
                # Two containers may share a host's name, and both be its process 1.
                host=(metadata or {}).get("place"),
                reserved=reserved,
                capabilities=tuple(capabilities),
                tasks=getattr(processor, "tasks", ()),
                metadata=metadata or {},
            ),
            on_lost_contact=settings.on_lost_contact,
        )
        here = settings.isolation == "none"
        self._ahead = Prefetch(settings.claim_ahead if here else 1)
        self._attempts = Attempts(
            store,
            pool,
            processor,
            settings=settings,
            membership=self._membership,
            ahead=self._ahead,
            settled=self._settled,
        )
        self._idle_since = self._looked_at = runtime.monotonic()
        self._has_changed = False
        self._throttled = 0  # jobs in a row
        self._jobs = self._failed = self._refused = 0

    # -- the loop ---------------------------------------------------------------------------

    def run(self) -> WorkerReport:
        """Work until there is a reason to leave, and leave."""
        with Signals(self._on_signal):
            if not self._membership.register():
                return self.report(TOLD_TO)
            self._idle_since = runtime.monotonic()
            for observer in self._observers:
                observer.began()
            try:
                left = self._work()
            finally:
                self._attempts.end()
                for observer in self._observers:
                    observer.ended()
            if left != LOST:
                self._leave(left)
            return self.report(left)

    def _work(self) -> str:
        while True:
            if self.is_told_to_leave:
                return TOLD_TO
            if self._membership.status != model.ACTIVE:
                return LOST
            item = self._next()
            if item is not None:
                if (settled := self._process(item)) is not None:
                    self._ahead.settle(settled)
                self._jobs += 1
                if self._jobs == self._settings.max_jobs:
                    return TOLD_TO if self.is_told_to_leave else ENOUGH
                self._idle_since = runtime.monotonic()
            elif self._has_changed:
                return CHANGED
            elif self._membership.status != model.ACTIVE:
                continue
            elif self._settings.max_jobs == 1:
                return NO_WORK
            elif not self._wait():
                return IDLE

    @property
    def is_told_to_leave(self) -> bool:
        return self._membership.is_told_to_leave

    def unsettled(self) -> list[model.Settlement]:
        """What it has finished and could not store."""
        return self._ahead.take()

    def _next(self) -> model.WorkItem | None:
        """The next item taken ahead, or settle what is done and claim more, in one step."""
        if (item := self._ahead.next()) is not None:
            return item
        if self._are_files_changed(CHANGE_SECONDS):
            self._has_changed = True
            return None
        settlements = self._ahead.take()
        room = self._settings.max_jobs - self._jobs if self._settings.max_jobs else None
        size = self._ahead.size(room)
        asked_at = runtime.monotonic()
        answer = self._membership.persist(
            lambda: self._pool.exchange(self._membership.me, settlements=settlements, claim=size),
            signals=2 if settlements else 1,
        )
        if answer is None:
            self._ahead.restore(settlements)
            return None
        if settlements:
            self._settled(settlements, answer.settled)
            if not answer.items:
                self._happened(model.POOL_EMPTY)
        self._membership.was_claimed(asked_at)
        item = self._ahead.begin(answer.items)
        is_outdated = self._version is not None and answer.version not in (None, self._version)
        if is_outdated or (item is not None and self._are_files_changed(CLAIM_SECONDS)):
            self._give_back(item)
            return None
        if self._ahead:
            self._attempts.hurry()
        return item

    def _are_files_changed(self, seconds: float) -> bool:
        now = runtime.monotonic()
        if self._version is None or now - self._looked_at < seconds:
            return False
        self._looked_at = now
        has_changed = getattr(self._processor, "has_changed", None)
        return has_changed is not None and has_changed()

    def _give_back(self, item: model.WorkItem | None) -> None:
        """What was claimed with old settings or code is for a worker that has the new ones."""
        self._has_changed = True
        if item is not None:
            self._attempts.hand_back(item)

    def _settled(self, settlements: Sequence[model.Settlement], accepted: Sequence[bool]) -> None:
        """The store's answer: a result whose claim was lost meanwhile is refused."""
        self._refused += len(accepted) - sum(accepted)
        for observer in self._observers:
            for settled, is_accepted in zip(settlements, accepted, strict=False):
                observer.settled(settled, is_accepted)

    def _wait(self) -> bool:
        """Sleep until there may be work; False when this worker has been idle for too long."""
        try:
            left = self._idle_since + self._settings.idle_seconds - runtime.monotonic()
            if left <= 0:
                self._idle_since = runtime.monotonic()
                return self._is_needed()
            if not self._sleep(min(left, LOOK_UP_SECONDS)):
                self._membership.wait_sign()  # with work the claim comes first: it is a sign too
        except StoreUnavailable:
            runtime.sleep(RETRY_SECONDS)
        return True

    def _sleep(self, seconds: float) -> bool:
        end = runtime.monotonic() + seconds
        if self._pool.wait(self._membership.me, seconds=seconds):
            return True
        if runtime.monotonic() < end:
            self._membership.heartbeat()  # woken without work: it has to leave
        return False

    def _is_needed(self) -> bool:
        if self._settings.idle_seconds and self._has_work_soon():
            return True
        rule = extensions.load("idle", "is_needed")
        return bool(rule(self._store, self._pool.name, self._settings, self._membership.me))

    def _has_work_soon(self) -> bool:
        """Whether a short pause ends, or a delayed job is due, sooner than a new worker pays."""
        if not self._pool.size():
            return False
        seen = self._pool.observe()
        if seen.paused:
            return seen.paused_seconds is not None and seen.paused_seconds <= STAY_SECONDS
        due = seen.next_due_seconds
        return due is not None and due <= self._settings.idle_seconds

    def _leave(self, left: str) -> None:
        settlements = self._ahead.take_all()
        if settlements:
            settled = self._membership.persist(lambda: self._pool.settle_many(settlements))
            self._settled(settlements, settled or ())
            self._happened(model.POOL_EMPTY)
        self._membership.persist(lambda: self._membership.leave(model.TERMINATED, left), signals=1)
        if left != TOLD_TO:  # who wanted it gone does not want it back
            self._happened(model.WORKER_DONE)

    def _happened(self, event: str) -> None:
        self._store.happened(event, self._pool.name, self._settings)

    def report(self, left: str) -> WorkerReport:
        """What it has done so far."""
        return WorkerReport(
            worker_id=self._membership.registration.worker_id,
            jobs=self._jobs,
            failed=self._failed,
            refused=self._refused,
            left=left,
        )

    # -- one job ----------------------------------------------------------------------------

    def _process(self, item: model.WorkItem) -> model.Settlement | None:
        """Run the job; its settlement, or None when the claim was lost meanwhile."""
        for observer in self._observers:
            observer.job_began(item)
        settled = self._attempt(item)
        for observer in self._observers:
            observer.job_ended(item, settled)
        return settled

    def _attempt(self, item: model.WorkItem) -> model.Settlement | None:
        outcome, seconds = self._attempts.run(item)
        if outcome is None:
            return None
        if not outcome.ok:
            self._failed += 1
            import traceback  # noqa: F401  (20 ms that the next child that fails inherits)
        if outcome.is_throttled:
            self._slow_down(item, outcome)
        else:
            self._throttled = 0
        return settlement(item, outcome, self._settings, seconds)

    def _slow_down(self, item: model.WorkItem, outcome: Outcome) -> None:
        """Pause the pool, if the job asked for that or the service refuses everything."""
        self._throttled += 1
        seconds = outcome.delay_seconds or 0.0
        is_general = self._throttled >= THROTTLED_IN_A_ROW or item.transients >= 2
        if outcome.throttled or is_general:
            cause = (outcome.error or "throttled").partition("\n")[0]
            self._membership.persist(lambda: self._pool.hold_off(seconds, reason=cause))

    def _on_signal(self) -> None:
        self._membership.signals += 1
        for observer in self._observers:
            observer.signalled(self._membership.signals)
        if self._membership.signals > 1:
            self._attempts.stop_now()
