"""One attempt at a job, in a child process or in the worker itself, until it ends or is stopped.

A job is stopped when its time is over, when its claim is lost (a cancel is noticed within 200 ms
where the job runs in a child), on a second signal, and with `on_lost_contact: stop` when the store
cannot be reached. Heartbeats go on beside the job: from this loop while it runs in a child, from a
thread (see heartbeat_thread.py) while it runs in the worker.
"""

from __future__ import annotations

from sprat.core import model
from sprat.core.errors import StoreUnavailable
from sprat.core.retry_rules import stopped_after
from sprat.core.runtime import runtime
from sprat.store.backend import ClaimRef
from sprat.store.pool import worker_ref
from sprat.worker.job import Job, Stopped
from sprat.worker.prefetch import LET_GO_SECONDS
from sprat.worker.processor import Outcome, attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sprat.store.store import Store
    from sprat.worker.heartbeat_thread import HeartbeatThread
    from sprat.worker.membership import Membership
    from sprat.worker.prefetch import Prefetch
    from sprat.worker.processor import Processor

    Settled = Callable[[Sequence[model.Settlement], Sequence[bool]], None]

LOOK_UP_SECONDS = 0.5  # a second signal is noticed within this
CANCEL_SECONDS = 0.1  # a job that runs longer than this is watched for a cancel
POLL_SECONDS = 0.15  # between two looks, where the store has no bell for it


class Attempts:
    """Runs one job after the other for one worker."""

    def __init__(
        self,
        store: Store,
        pool: str,
        processor: Processor,
        *,
        settings: model.PoolSettings,
        membership: Membership,
        ahead: Prefetch,
        settled: Settled,
    ) -> None:
        """`settled` gets the store's answers to what was settled beside a job."""
        self._store = store
        self._pool = store.pool(pool)
        self._processor = processor
        self._settings = settings
        self._membership = membership
        self._ahead = ahead
        self._settled = settled
        self._pulse: HeartbeatThread | None = None
        self._current: model.WorkItem | None = None  # the job that the pulse beats beside
        self.stop_now: Callable[[], None] = lambda: None  # for a signal handler

    def run(self, item: model.WorkItem) -> tuple[Outcome | None, float | None]:
        """How the job ended (None: its claim was lost, or it was handed back), and its seconds
        where the store cannot tell them from the claim."""
        if self._settings.isolation == "process":
            return self._in_a_child(item), None
        began = runtime.monotonic()
        return self._here(item), runtime.monotonic() - began

    def hurry(self) -> None:
        """Items were claimed ahead: they must not wait for a long job."""
        if self._pulse:
            self._pulse.hurry(LET_GO_SECONDS)

    def end(self) -> None:
        if self._pulse:
            self._pulse.end()

    def hand_back(self, item: model.WorkItem) -> None:
        self._membership.persist(lambda: self._pool.hand_back(item))

    def _in_a_child(self, item: model.WorkItem) -> Outcome | None:
        from sprat.worker.job_process import (
            JobProcess,  # here: a job that runs in the worker has none
        )

        job = Job(self._pool, item)
        child = JobProcess(lambda: attempt(self._processor, job))
        limit = self._settings.timeout_seconds
        began = runtime.monotonic()
        while True:
            pause, bell = self._until_look(began)
            if limit is not None:
                pause = min(pause, began + limit - runtime.monotonic())
            outcome = child.wait(max(0.0, pause), bell)
            if outcome is not None:
                return outcome
            if limit is not None and runtime.monotonic() >= began + limit:
                child.kill()
                return Outcome(ok=False, error=stopped_after(limit))
            if self._has_to_stop:
                child.kill()
                self.hand_back(item)
                return None
            if not self._still_holds(item):
                # A job that ended while the store was asked has a result: its token decides.
                outcome = child.wait(0.0)
                if outcome is None:
                    child.kill()
                return outcome

    def _until_look(self, began: float) -> tuple[float, int | None]:
        """How long to leave a job alone, and a descriptor that tells of a cancel before that.
        Most jobs are over before it is worth a connection to listen for one."""
        if runtime.monotonic() - began < CANCEL_SECONDS:
            return CANCEL_SECONDS, None
        bell = self._cancel_bell()
        longest = POLL_SECONDS if bell is None else LOOK_UP_SECONDS
        return min(self._membership.until_due(), longest), bell

    def _cancel_bell(self) -> int | None:
        try:
            return self._store.backend.cancel_bell(worker_ref(self._membership.me))
        except StoreUnavailable:
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
            if self._has_to_stop:
                self.hand_back(item)
            return None
        finally:
            self._current = None

    def _start_pulse(self) -> HeartbeatThread:
        from sprat.worker.heartbeat_thread import (
            HeartbeatThread,  # here: only a job in the worker needs the thread
        )

        pulse = self._pulse = HeartbeatThread(
            self._beat, pause=self._until_beat, timeout=self._settings.timeout_seconds
        )
        self.stop_now = pulse.stop_now
        pulse.start()
        return pulse

    def _until_beat(self) -> float:
        lease = self._membership.lease
        return min(self._membership.until_due(), LET_GO_SECONDS if self._ahead else lease)

    def _beat(self) -> bool:
        """Beside a job: settle what is done, hand back what waits for it, and stay alive."""
        if self._ahead:
            self._let_go()
        item = self._current
        if item is None or not self._membership.is_due():
            return True
        return self._membership.holds(item) and not self._membership.is_out_of_contact

    def _let_go(self) -> None:
        settlements = self._ahead.take_all()
        try:
            self._settled(settlements, self._pool.settle_many(settlements))
        except StoreUnavailable:
            self._ahead.restore(settlements)

    def _still_holds(self, item: model.WorkItem) -> bool:
        if self._membership.is_due():
            return self._membership.holds(item)
        return self._membership.still_holds(ClaimRef.of((item.id, item.token)))

    @property
    def _has_to_stop(self) -> bool:
        """Whether the job has to be handed back now."""
        return self._membership.signals > 1 or self._membership.is_out_of_contact
