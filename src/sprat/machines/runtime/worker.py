"""A machine as a worker: its registration, its heartbeats, and the items that it holds.

Heartbeats are sent between the steps of a machine and while it waits; what may take long runs in a
child meanwhile. So there is no thread, and a job that keeps the interpreter busy does no harm.
"""

from __future__ import annotations

import os
import time

from sprat.core import model
from sprat.core.errors import StoreUnavailable
from sprat.machines.stepping import Failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.store import Store

BETWEEN_STATES_SECONDS = 1.0  # each state is a sign of life, but quick ones need no write each


class Fenced(BaseException):
    """This worker counts no more: it was taken for dead, or its launch was given up."""


class ClaimLost(Failed):
    """The item is no longer ours: it was cancelled, or given to another."""

    def __init__(self, item_id: str) -> None:
        super().__init__(f"the claim on {item_id} was lost", ("ClaimLost",))


class MachineWorker:
    def __init__(
        self, store: Store, worker_id: str, *, interval: float | None, reserved: bool = False
    ) -> None:
        self._store = store
        self._interval = interval or model.HEARTBEAT_SECONDS
        self._lease = 2 * self._interval
        self._is_reserved = reserved
        self._heard_at = time.monotonic()
        self._me: model.WorkerRecord | None = None
        self.worker_id = worker_id
        self.status = model.STARTING
        self.held: dict[str, model.WorkItem] = {}
        self.claims = 0

    @property
    def is_registered(self) -> bool:
        return self._me is not None

    def join(self, pool: str | None) -> model.WorkerRecord:
        """Register, once."""
        if self._me is None:
            self._heard_at = time.monotonic()
            me = self._store.workers.register(
                model.WorkerRegistration(
                    worker_id=self.worker_id,
                    pool_id=pool,
                    host=os.uname().nodename,
                    pid=os.getpid(),
                    lease_seconds=self._lease,
                    reserved=self._is_reserved,
                )
            )
            if me.status != model.ACTIVE:
                raise Fenced(me.reason or me.status)
            self._me, self.status = me, me.status
        return self._me

    def beat(self, *, now: bool = False, between_states: bool = False) -> None:
        """Send a heartbeat if it is time. Raises ClaimLost or Fenced when it is too late."""
        pause = min(self._interval, BETWEEN_STATES_SECONDS) if between_states else self._interval
        is_due = time.monotonic() - self._heard_at >= pause
        if self._me is None or not (now or is_due):
            return
        try:
            answer = self._store.workers.heartbeat(self._me, holding=list(self.held.values()))
        except StoreUnavailable:
            return  # the machine goes on: the store decides when it is back
        self._heard_at = time.monotonic()
        self.status = answer.status
        if answer.status in model.ENDED:
            raise Fenced(answer.status)
        for item_id in answer.lost:
            self.held.pop(item_id, None)
            raise ClaimLost(item_id)

    @property
    def until_beat(self) -> float:
        return max(0.0, self._heard_at + self._interval - time.monotonic())

    def hold(self, item: model.WorkItem) -> None:
        self.held[item.id] = item
        self.claims += 1

    def leave(self, status: str, reason: str) -> None:
        """Say good-bye: `terminated` hands what it holds back, `lost` releases it as a crash."""
        if self._me is not None:
            self._store.workers.update_status(self._me, status, reason=reason)
            self._me, self.status = None, status
            self.held.clear()
