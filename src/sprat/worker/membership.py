"""A worker's contact with its store: heartbeats, and patience while the store cannot be reached.

A worker does not leave because the store is away: its job goes on, and what the worker has to write
is tried again until the store answers. The store's answer decides: a worker that was declared lost
meanwhile stops, any other goes on (see leases.py for how a store treats leases after an outage).
"""

from __future__ import annotations

import time

from sprat.core import model
from sprat.core.errors import SpratError, StoreUnavailable
from sprat.core.leases import TOUCH_PART

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from sprat.store.backend import ClaimRef
    from sprat.store.store import Store

    T = TypeVar("T")

RETRY_SECONDS = 0.2  # between two tries while the store cannot be reached


class Membership:
    """Used by the worker's loop, and by its heartbeat thread while a job runs in the worker."""

    def __init__(
        self, store: Store, pool: str, *, heartbeat_seconds: float, signals: Callable[[], int]
    ) -> None:
        """`signals`: how often the worker was asked to leave."""
        self._store = store
        self._pool = pool
        self._heartbeat_seconds = heartbeat_seconds
        self._signals = signals
        self._may_reap = True
        self.lease = 2 * heartbeat_seconds
        self.status = model.ACTIVE
        self.heard_at = time.monotonic()  # the lease lasts at least from here
        self.me: model.WorkerRecord

    def register(self, registration: model.WorkerRegistration) -> bool:
        """Whether the worker may work: its place was not given up, or taken by another."""
        self.heard_at = time.monotonic()
        self.me = self._store.workers.register(registration)
        return self.me.status == model.ACTIVE

    def heartbeat(self, holding: Sequence[model.WorkItem] = ()) -> tuple[str, ...]:
        """Send one; the ids of the claims that are lost."""
        answer = self._store.workers.heartbeat(self.me, holding=holding)
        self.heard_at = time.monotonic()
        self.status = answer.status
        return answer.lost

    def holds(self, item: model.WorkItem) -> bool:
        """Send a heartbeat; False when the claim is lost. A store that does not answer took
        nothing away."""
        try:
            return item.id not in self.heartbeat((item,))
        except StoreUnavailable:
            return True

    def still_holds(self, claim: ClaimRef) -> bool:
        """The same question without a heartbeat."""
        try:
            return not self._store.backend.lost((claim,))
        except StoreUnavailable:
            return True

    def wait_sign(self) -> None:
        """For a worker without work: a sign of life, and a look for dead peers."""
        if time.monotonic() - self.heard_at < TOUCH_PART * self.lease:
            return
        self.heartbeat()
        if self._may_reap:
            self._reap()

    def _reap(self) -> None:
        try:
            reaped = self._store.workers.reap(self._pool)
        except StoreUnavailable:
            raise
        except SpratError:  # over HTTP the server reaps: a worker's key does not allow it
            self._may_reap = False
            return
        if reaped.workers:
            settings = self._store.pool(self._pool).state().settings
            self._store.happened(model.WORKER_LOST, self._pool, settings)
            self._store.happened(model.POOL_EMPTY, self._pool, settings)

    def is_due(self) -> bool:
        return time.monotonic() - self.heard_at >= self._heartbeat_seconds

    def until_due(self) -> float:
        """Soon, when it is overdue: the store did not answer, or only claims renewed the lease."""
        due = self.heard_at + self._heartbeat_seconds - time.monotonic()
        return max(due, RETRY_SECONDS)

    def was_claimed(self, asked_at: float) -> None:
        """A claim renews a lease of which less than half is left: half of it is there now."""
        self.heard_at = max(self.heard_at, asked_at - self.lease / 2)

    def is_lost_for(self, part: float) -> bool:
        """Whether the store has been silent for this part of the lease."""
        return time.monotonic() - self.heard_at >= part * self.lease

    def persist(self, step: Callable[[], T], *, signals: int = 2) -> T | None:
        """Repeat a step until the store answers; None when the worker was asked to leave, with
        this many signals, and its lease is over. A step that stores nothing needs one."""
        while True:
            try:
                return step()
            except StoreUnavailable:
                if self._signals() >= signals and self.is_lost_for(1.0):
                    self.status = model.LOST
                    return None
                time.sleep(RETRY_SECONDS)
