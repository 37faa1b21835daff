"""What the memory store holds: plain, changeable objects in plain dicts, behind one lock.

The records of `model.py` are made from these on the way out, so callers never see them change.
"""

from __future__ import annotations

from collections import Counter

from sprat.core import leases, model, tenant_limits
from sprat.core.errors import UnknownItem, UnknownWorker
from sprat.store.memory.ledger import Ledger
from sprat.store.memory.queue import DelayedQueue, ReadyQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.store.memory.item import Item

DELAYED = "delayed"  # counted beside the statuses: pending items that are not ready yet


class ScaleSetState:
    """The scaling state of a pool, or of one group of it. The version moves with each decision."""

    def __init__(self) -> None:
        self.version = 0
        self.last_up_at: float | None = None
        self.last_down_at: float | None = None
        self.launch_failures = 0
        self.last_launch_failure_at: float | None = None
        self.decisions: list[model.RecordedDecision] = []
        self.decided: Counter[tuple[str, int]] = Counter()  # by direction and number of the reason


class PoolRecord:
    """One pool: its items by state, whose turn it is, its settings and its history."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.settings = model.PoolSettings()
        self.version = 0
        self.paused_until = 0.0  # infinite: until resumed
        self.pause_reason: str | None = None
        self.awaited_at: float | None = None  # the due time that a pass was last asked for
        self.check_asked_at: float | None = None  # a scaling pass was asked for, and has not begun

        self.items: dict[str, Item] = {}  # in order of arrival
        self.keys: dict[str, Item] = {}
        self.tallies: dict[tuple[str | None, str], int] = {}  # by group and status
        self.ready = ReadyQueue()
        self.delayed = DelayedQueue()
        self.parked: dict[str, Item] = {}  # pending items with a hold, by id

        self.has_tenants = False  # until it has, turns are not kept
        self.turn = 0
        self.turns: dict[str | None, int] = {}  # when each tenant last had its turn
        self.running: dict[str, int] = {}  # claimed items by tenant

        self.ledger = Ledger()

    def place(
        self,
        item: Item,
        status: str,
        now: float,
        *,
        delay: float = 0.0,
        hold: str | None = None,
    ) -> None:
        """Bring an item into a status: the only place where counts and queues change."""
        self._forget(item)
        item.status = status
        item.hold = hold
        if hold is not None:
            self.parked[item.id] = item
        if status == model.PENDING:
            item.ready_at = now + delay
            item.delayed = item.ready_at > now
        self._count(item, 1)
        if item.delayed:
            self.delayed.add(item)
        elif item.ready:
            self.ready.add(item)

    def remove(self, item: Item) -> None:
        """Forget a finished item, and its key with it."""
        self._forget(item)
        del self.items[item.id]
        if item.key is not None:
            del self.keys[item.key]

    def wake(self, now: float) -> None:
        """Delayed items whose time has come are ready."""
        for item in self.delayed.due(now):
            self._count(item, -1)
            item.delayed = False
            self._count(item, 1)
            self.ready.add(item)

    def _forget(self, item: Item) -> None:
        if item.status:
            self._count(item, -1)
        item.delayed = False
        self.parked.pop(item.id, None)

    def _count(self, item: Item, change: int) -> None:
        names = (item.status, DELAYED) if item.delayed else (item.status,)
        for name in names:
            self.tallies[item.group, name] = self.tallies.get((item.group, name), 0) + change
        if item.status == model.CLAIMED and item.tenant is not None:
            self.running[item.tenant] = self.running.get(item.tenant, 0) + change

    def tally(self, status: str, group: str | None) -> int:
        """How many items have this status; with a group, how many that need it."""
        if group is not None:
            return self.tallies.get((group or None, status), 0)
        return sum(n for (_, name), n in self.tallies.items() if name == status)

    def counts(self, group: str | None = None) -> model.Counts:
        names = (*model.ITEM_STATUSES, DELAYED)
        return model.Counts(**{name: self.tally(name, group) for name in names})

    def is_paused(self, now: float) -> bool:
        return self.paused_until > now

    def paused_seconds(self, now: float) -> float | None:
        """How long the pause still lasts; None also for one until resumed."""
        left = self.paused_until - now
        return left if 0 < left < float("inf") else None

    def has_room(self, tenant: str | None) -> bool:
        """Whether one more item of this tenant may run."""
        if tenant is None:
            return True
        limit = tenant_limits.limit_of(self.settings, tenant)
        return limit is None or self.running.get(tenant, 0) < limit

    def take_turn(self, tenant: str | None) -> None:
        if self.has_tenants:
            self.turn += 1
            self.turns[tenant] = self.turn


class WorkerEntry:
    """One worker: its row in the registry, and the claims that it holds."""

    def __init__(self, worker_id: str, status: str, now: float) -> None:
        self.worker_id = worker_id
        self.status = status
        self.pool_id: str | None = None
        self.host: str | None = None
        self.pid: int | None = None
        self.launched_for: str | None = None  # the group whose scale set reserved it
        self.capabilities: tuple[str, ...] = ()
        self.started_at = now
        self.last_heartbeat = now
        self.lease_seconds = model.LEASE_SECONDS
        self.lease_until = now
        self.renewals = 0  # see leases.py
        self.incarnation = 0
        self.metadata: dict[str, Any] = {}
        self.reason: str | None = None
        self.ended_at: float | None = None
        self.claims: dict[str, Item] = {}  # in the order in which they were claimed

    def is_current(self, incarnation: int | None) -> bool:
        return incarnation is None or incarnation == self.incarnation

    def is_live(self, now: float) -> bool:
        return self.status in model.LIVE and self.lease_until > now

    def renew_lease(self, now: float) -> None:
        self.last_heartbeat = now
        self.lease_until = now + self.lease_seconds
        self.renewals = 0

    def current_task(self) -> str | None:
        """The item that it has started, else the one that it comes to next."""
        held = sorted(self.claims.values(), key=lambda i: (i.ahead, i.claimed_at, i.number))
        return held[0].id if held else None

    @property
    def is_suspended(self) -> bool:
        return self.metadata.get(model.SUSPENDED) is True

    def as_record(self) -> model.WorkerRecord:
        return model.WorkerRecord(
            worker_id=self.worker_id,
            status=self.status,
            pool_id=self.pool_id,
            host=self.host,
            pid=self.pid,
            capabilities=self.capabilities,
            started_at=self.started_at,
            last_heartbeat=self.last_heartbeat,
            lease_seconds=self.lease_seconds,
            lease_until=self.lease_until,
            incarnation=self.incarnation,
            current_task_id=self.current_task(),
            claims=len(self.claims),
            metadata=dict(self.metadata),
            reason=self.reason,
            renewals=self.renewals,
        )


class StoreState:
    """The whole store."""

    def __init__(self) -> None:
        self.pools: dict[str, PoolRecord] = {}
        self.items: dict[str, Item] = {}
        self.workers: dict[str, WorkerEntry] = {}
        self.scale_sets: dict[tuple[str, str | None], ScaleSetState] = {}  # by pool and group
        self.documents: dict[tuple[str, str], tuple[model.Document, float]] = {}  # until when
        self.buckets: dict[str, tuple[float, float]] = {}  # tokens, and when they were counted
        self.arrivals = 0
        self.marked_at: float | None = None  # when the store last worked: see leases.py

    def pool(self, name: str) -> PoolRecord:
        """The pool of this name, which comes into being now if it is not there: for writing."""
        return self.pools.setdefault(name, PoolRecord(name))

    def look(self, name: str) -> PoolRecord:
        """The pool of this name, or an empty one that is not kept: for reading."""
        return self.pools.get(name) or PoolRecord(name)

    def item(self, item_id: str) -> Item:
        if item_id not in self.items:
            raise UnknownItem(f"the store has no item {item_id!r}")
        return self.items[item_id]

    def worker(self, worker_id: str) -> WorkerEntry:
        if worker_id not in self.workers:
            raise UnknownWorker(f"worker {worker_id!r} is not registered")
        return self.workers[worker_id]

    def touch(self, now: float) -> None:
        """Mark that the store works now; leases that its absence may have ended start afresh."""
        if self.marked_at is not None and now - self.marked_at <= leases.TOUCH_SECONDS:
            return
        if self.marked_at is not None:
            for lease in leases.after_gap(self._leases(), marked_at=self.marked_at, now=now):
                worker = self.workers[lease.worker_id]
                worker.lease_until = lease.until
                worker.renewals = lease.renewals
        self.marked_at = now

    def _leases(self) -> list[leases.LeaseState]:
        return [
            leases.LeaseState.of((w.worker_id, w.lease_seconds, w.lease_until, w.renewals))
            for w in self.workers.values()
            if w.status in model.LIVE
        ]

    def workers_of(self, pool: str, group: str | None, now: float) -> list[WorkerEntry]:
        """The live workers of a scale set, oldest first."""
        return [
            worker
            for worker in self.by_age()
            if worker.pool_id == pool
            and worker.is_live(now)
            and (group is None or group in worker.capabilities)
        ]

    def by_age(self) -> list[WorkerEntry]:
        return sorted(self.workers.values(), key=lambda w: (w.started_at, w.worker_id))

    def scale_set(self, pool: str, group: str | None) -> ScaleSetState:
        """The scaling state, or a new one that is not kept: for reading."""
        return self.scale_sets.get((pool, group)) or ScaleSetState()
