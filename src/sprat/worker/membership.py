"""Being a worker of a store: registration, heartbeats, lost contact, and leaving.

A worker does not leave because the store is away: its job goes on, and what the worker has to write
is tried again until the store answers. The store's answer decides: a worker that was declared lost
meanwhile stops, any other goes on (see leases.py for how a store treats leases after an outage).
"""

from __future__ import annotations

import os

from sprat.core import model
from sprat.core.errors import SpratError, StoreUnavailable
from sprat.core.leases import TOUCH_PART
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from sprat.store.backend import ClaimRef
    from sprat.store.store import Store

    T = TypeVar("T")

RETRY_SECONDS = 0.2  # between two tries while the store cannot be reached
SAFE_PART_OF_LEASE = 0.8  # with `on_lost_contact: stop` a job ends after this part of its lease


def registration(
    worker_id: str,
    pool: str | None,
    heartbeat_seconds: float,
    *,
    host: str | None = None,
    **about: Any,
) -> model.WorkerRegistration:
    """Of a worker in this process, whose lease lasts for two heartbeats."""
    return model.WorkerRegistration(
        worker_id=worker_id,
        pool_id=pool,
        host=host or os.uname().nodename,
        pid=os.getpid(),
        lease_seconds=2 * heartbeat_seconds,
        **about,
    )


class Membership:
    """One worker as its store knows it. Used by the worker's loop, and by its heartbeat thread
    while a job runs in the worker."""

    me: model.WorkerRecord  # once it is registered

    def __init__(
        self,
        store: Store,
        registration: model.WorkerRegistration,
        *,
        on_lost_contact: str = "continue",
    ) -> None:
        self._store = store
        self._may_reap = True
        self.registration = registration
        self.on_lost_contact = on_lost_contact
        self.lease = registration.lease_seconds
        self.heartbeat_seconds = self.lease / 2
        self.status = model.STARTING
        self.signals = 0  # how often this process was asked to leave
        self.heard_at = runtime.monotonic()  # the lease lasts at least from here

    def register(self) -> bool:
        """Whether the worker may work: its place was not given up, or taken by another."""
        self.heard_at = runtime.monotonic()
        self.me = self._store.workers.register(self.registration)
        self.status = self.me.status
        return self.status == model.ACTIVE

    def leave(self, status: str, reason: str) -> None:
        """`terminated` hands back what the worker holds, `lost` releases it as a crash does."""
        self._store.workers.update_status(self.me, status, reason=reason)
        self.status = status

    @property
    def is_told_to_leave(self) -> bool:
        return self.signals > 0 or self.status == model.TERMINATING

    # -- heartbeats -------------------------------------------------------------------------

    def heartbeat(self, holding: Iterable[model.WorkItem] = ()) -> tuple[str, ...]:
        """Send one; the ids of the claims that are lost."""
        answer = self._store.workers.heartbeat(self.me, holding=list(holding))
        self.heard_at = runtime.monotonic()
        self.status = answer.status
        return answer.lost

    def is_due(self, seconds: float | None = None) -> bool:
        """Whether the last sign of life was this long ago; by default, a heartbeat's interval."""
        pause = self.heartbeat_seconds if seconds is None else seconds
        return runtime.monotonic() - self.heard_at >= pause

    def until_due(self) -> float:
        """Soon, when it is overdue: the store did not answer, or only claims renewed the lease."""
        due = self.heard_at + self.heartbeat_seconds - runtime.monotonic()
        return max(due, min(RETRY_SECONDS, self.heartbeat_seconds / 2))

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

    def was_claimed(self, asked_at: float) -> None:
        """A claim renews a lease of which less than half is left: half of it is there now."""
        self.heard_at = max(self.heard_at, asked_at - self.lease / 2)

    def wait_sign(self) -> None:
        """For a worker without work: a sign of life, and a look for dead peers."""
        if self.is_due(TOUCH_PART * self.lease):
            self.heartbeat()
            if self._may_reap and self.registration.pool_id is not None:
                self._reap(self.registration.pool_id)

    def _reap(self, pool: str) -> None:
        try:
            reaped = self._store.workers.reap(pool)
        except StoreUnavailable:
            raise
        except SpratError:  # over HTTP the server reaps: a worker's key does not allow it
            self._may_reap = False
            return
        if reaped.workers:
            self._store.lost_workers(pool, self._store.pool(pool).state().settings)

    # -- while the store cannot be reached --------------------------------------------------

    @property
    def is_out_of_contact(self) -> bool:
        """Whether jobs have to end because the store is away."""
        return self.on_lost_contact == "stop" and self.is_due(SAFE_PART_OF_LEASE * self.lease)

    def persist(self, step: Callable[[], T], *, signals: int = 2) -> T | None:
        """Repeat a step until the store answers; None when the worker was asked to leave, with
        this many signals, and its lease is over. A step that stores nothing needs one."""
        while True:
            try:
                return step()
            except StoreUnavailable:
                if self.signals >= signals and self.is_due(self.lease):
                    self.status = model.LOST
                    return None
                runtime.sleep(RETRY_SECONDS)
