"""A machine as a worker: its registration, its heartbeats, and the items that it holds.

Heartbeats are sent between the steps of a machine and while it waits; what may take long runs in a
child meanwhile. So there is no thread, and a job that keeps the interpreter busy does no harm.
"""

from __future__ import annotations

from sprat.core import model
from sprat.core.errors import StoreUnavailable
from sprat.machines.stepping import Failed
from sprat.store.store import Store
from sprat.worker.membership import Membership, registration

BETWEEN_STATES_SECONDS = 1.0  # each state is a sign of life, but quick ones need no write each


class Fenced(BaseException):
    """This worker counts no more: it was taken for dead, or its launch was given up."""


class ClaimLost(Failed):
    """The item is no longer ours: it was cancelled, or given to another."""

    def __init__(self, item_id: str) -> None:
        super().__init__(f"the claim on {item_id} was lost", ("ClaimLost",))


class MachineWorker(Membership):
    def __init__(
        self, store: Store, worker_id: str, *, interval: float | None, reserved: bool = False
    ) -> None:
        heartbeat_seconds = interval or model.HEARTBEAT_SECONDS
        super().__init__(store, registration(worker_id, None, heartbeat_seconds, reserved=reserved))
        self.worker_id = worker_id
        self.is_registered = False
        self.held: dict[str, model.WorkItem] = {}
        self.claims = 0

    def join(self, pool: str | None) -> model.WorkerRecord:
        """Register, once."""
        if not self.is_registered:
            self.registration = self.registration.replace(pool_id=pool)
            if pool is not None:
                self.on_lost_contact = self._store.pool(pool).state().settings.on_lost_contact
            if not self.register():
                raise Fenced(self.me.reason or self.status)
            self.is_registered = True
        return self.me

    def beat(self, *, now: bool = False, between_states: bool = False) -> None:
        """Send a heartbeat if it is time. Raises ClaimLost or Fenced when it is too late."""
        pause = min(self.heartbeat_seconds, BETWEEN_STATES_SECONDS) if between_states else None
        if not self.is_registered or not (now or self.is_due(pause)):
            return
        try:
            lost = self.heartbeat(self.held.values())
        except StoreUnavailable:
            if self.is_out_of_contact:
                raise Fenced("the store cannot be reached") from None
            return  # the machine goes on: the store decides when it is back
        if self.status in model.ENDED:
            raise Fenced(self.status)
        for item_id in lost:
            self.held.pop(item_id, None)
            raise ClaimLost(item_id)

    def hold(self, item: model.WorkItem) -> None:
        self.held[item.id] = item
        self.claims += 1

    def leave(self, status: str, reason: str) -> None:
        if self.is_registered:
            super().leave(status, reason)
            self.is_registered = False
            self.held.clear()
