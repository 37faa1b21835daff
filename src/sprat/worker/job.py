"""What a job can reach while it runs: its item, its checkpoint, progress, and whether to stop."""

from __future__ import annotations

from contextvars import ContextVar

from sprat.core.errors import SpratError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sprat.core.model import WorkItem
    from sprat.store.pool import WorkPool


class Stopped(BaseException):
    """Raised in the job's thread to end it (see heartbeat_thread.py); not an Exception, so that
    jobs do not catch it by accident."""


class Job:
    """One attempt at one item."""

    __slots__ = ("_is_cancelled", "_pool", "item")

    def __init__(
        self, pool: WorkPool, item: WorkItem, is_cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        self.item = item
        self._pool = pool
        self._is_cancelled = is_cancelled

    @property
    def attempt(self) -> int:
        """1 for the first start."""
        return self.item.attempts

    @property
    def fence(self) -> int:
        """Grows with every claim of this item: a service can refuse a write with a smaller one."""
        return self.item.epoch

    @property
    def checkpoint(self) -> Any:
        """What the attempt before saved, or None."""
        return self.item.checkpoint

    @property
    def cancelled(self) -> bool:
        """Whether this attempt counts no more: the item was cancelled, or given to another."""
        return self._is_cancelled()

    def save_checkpoint(self, data: Any) -> bool:
        """Keep data for the next attempt; False when this one counts no more."""
        return self._pool.save_checkpoint(self.item, data)

    def progress(self, fraction: float, note: str | None = None) -> bool:
        """Show how far the job is, from 0 to 1; False when this attempt counts no more."""
        return self._pool.report_progress(self.item, fraction, note)


# The job of this thread or asyncio task. An inline job may push another, which runs inside of it.
_current: ContextVar[Job | None] = ContextVar("sprat.current_job", default=None)
_running: dict[Job, Job] = {}  # every job in this process, and the outermost job around it


def current_job() -> Job:
    """The job that this code is part of. In a thread that the job has started by itself this is
    known only if no other job runs in this process."""
    job = _current.get()
    if job is not None:
        return job
    if len(set(_running.values())) != 1:
        raise SpratError("no job is running here: current_job() is for code that a worker runs")
    return next(reversed(_running))


def run(processor: Callable[[Job], Any], job: Job) -> Any:
    """What the processor answers to this job, which is the current one meanwhile."""
    outer = _current.get()
    _running[job] = job if outer is None else _running.get(outer, job)
    before = _current.set(job)
    try:
        return processor(job)
    finally:
        _current.reset(before)
        del _running[job]
