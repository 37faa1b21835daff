"""flatmachines' RegistrationBackend and WorkBackend over any store: our verbs as coroutines.

What they promise stays (an unknown id is a KeyError, `fail` is tried again at once or poisoned),
with our fences underneath: an item is claimed by one worker, and the result of a worker that was
given up changes nothing (it is logged). A result for an item that this process did not claim raises
NotClaimedHere. A worker that claims and never registered is registered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from flatmachines.distributed import WorkerFilter, WorkerRecord, WorkerRegistration
from flatmachines.work import WorkItem

from sprat.core import model
from sprat.core.errors import InvalidInput, UnknownWorker
from sprat.store.pool import WorkPool
from sprat.store.store import Store
from sprat.worker.membership import Membership

# flatmachines sends heartbeats between states, and a worker is stale after a minute without one.
LEASE_SECONDS = 120.0
OPTIONS = ("max_retries", "max_attempts", "priority", "delay", "tenant", "group", "key", "backlog")

log = logging.getLogger("sprat")


class Backends:
    """Both backends of one store, for `DistributedWorkerHooks(registration=, work=)`."""

    def __init__(self, store: Store, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self.store = store
        released: dict[str, int] = {}
        self.registration = RegistrationBackend(store, released, lease_seconds=lease_seconds)
        self.work = WorkBackend(store, released, lease_seconds=lease_seconds)


class RegistrationBackend:
    """A RegistrationBackend."""

    def __init__(
        self,
        store: Store,
        released: dict[str, int] | None = None,
        *,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._store = store
        self._workers = store.workers
        self._released = {} if released is None else released
        self._lease = lease_seconds

    async def register(
        self, worker: WorkerRegistration, *, pool_id: str | None = None
    ) -> WorkerRecord:
        """A launch that was reserved under this id becomes a live worker."""
        return record_of((await asyncio.to_thread(self.join, worker, pool_id)).me)

    def join(self, worker: WorkerRegistration, pool_id: str | None) -> Membership:
        known = self._workers.get(worker.worker_id)
        reserved = known is not None and known.status == model.STARTING
        member = Membership(
            self._store,
            model.WorkerRegistration(
                worker_id=worker.worker_id,
                pool_id=known.pool_id if known is not None and reserved else pool_id,
                host=worker.host,
                pid=worker.pid,
                capabilities=tuple(worker.capabilities or ()),
                lease_seconds=self._lease,
                reserved=reserved,
            ),
        )
        member.register()
        return member

    async def heartbeat(self, worker_id: str, metadata: Mapping[str, Any] | None = None) -> None:
        await asyncio.to_thread(self._workers.heartbeat, worker_id, metadata)

    async def update_status(self, worker_id: str, status: str) -> None:
        await asyncio.to_thread(self._update_status, worker_id, status)

    def _update_status(self, worker_id: str, status: str) -> None:
        known = self._workers.get(worker_id)
        if known is None:
            raise UnknownWorker(f"there is no worker {worker_id!r}")
        moved = self._workers.update_status(worker_id, status)
        if moved and status in model.ENDED and known.claims:
            # Its items are free in the same step; `release_by_worker` is asked for the number.
            self._released[worker_id] = known.claims

    async def get(self, worker_id: str) -> WorkerRecord | None:
        found = await asyncio.to_thread(self._workers.get, worker_id)
        return None if found is None else record_of(found)

    async def list(
        self,
        filter: WorkerFilter | None = None,  # noqa: A002  (its name there)
    ) -> list[WorkerRecord]:
        which = filter or WorkerFilter()
        found = await asyncio.to_thread(
            self._workers.list,
            status=which.status,
            capability=which.capability,
            stale_threshold_seconds=which.stale_threshold_seconds,
        )
        return [record_of(worker) for worker in found]


class WorkBackend:
    """A WorkBackend."""

    def __init__(
        self,
        store: Store,
        released: dict[str, int] | None = None,
        *,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._store = store
        self._released = {} if released is None else released
        self._lease = lease_seconds

    def pool(self, name: str) -> FlatWorkPool:
        return FlatWorkPool(self._store, name, self._released, self._lease)


class FlatWorkPool:
    """A WorkPool."""

    def __init__(self, store: Store, name: str, released: dict[str, int], lease: float) -> None:
        self.name = name
        self._store = store
        self._pool: WorkPool = store.pool(name)
        self._released = released
        self._lease = lease

    async def push(self, item: Any, options: Mapping[str, Any] | None = None) -> str:
        """Store an item. Besides max_retries the options are those of a sprat pool."""
        given = dict(options or {})
        for name in given:
            if name not in OPTIONS:
                raise InvalidInput(f"unknown option {name!r}: use {', '.join(OPTIONS)}")
        return await asyncio.to_thread(lambda: self._pool.push(item, **given))

    async def claim(self, worker_id: str) -> WorkItem | None:
        found = await asyncio.to_thread(self._claim, worker_id)
        return None if found is None else _item(found)

    def _claim(self, worker_id: str) -> model.WorkItem | None:
        try:
            return self._pool.claim(worker_id)
        except UnknownWorker:
            self._store.workers.register(
                model.WorkerRegistration(
                    worker_id=worker_id, pool_id=self.name, lease_seconds=self._lease
                )
            )
            return self._pool.claim(worker_id)

    async def complete(self, item_id: str, result: Any = None) -> None:
        if not await asyncio.to_thread(self._pool.complete, item_id, result):
            log.warning("the result of %s is too late: its claim was lost", item_id)

    async def fail(self, item_id: str, error: str | None = None) -> None:
        if not await asyncio.to_thread(self._pool.fail, item_id, error):
            log.warning("the failure of %s is too late: its claim was lost", item_id)

    async def size(self) -> int:
        return await asyncio.to_thread(self._pool.size)

    async def release_by_worker(self, worker_id: str) -> int:
        freed = await asyncio.to_thread(self._pool.release_by_worker, worker_id)
        return freed + self._released.pop(worker_id, 0)


def record_of(worker: model.WorkerRecord) -> WorkerRecord:
    return WorkerRecord(
        worker_id=worker.worker_id,
        status=worker.status,
        last_heartbeat=_iso(worker.last_heartbeat),
        host=worker.host,
        pid=worker.pid,
        capabilities=list(worker.capabilities),
        started_at=_iso(worker.started_at),
        current_task_id=worker.current_task_id,
        metadata=dict(worker.metadata),
    )


def _item(item: model.WorkItem) -> WorkItem:
    return WorkItem(
        id=item.id,
        data=item.data,
        claimed_by=item.claimed_by,
        attempts=item.attempts,
        max_retries=item.max_retries,
        status=item.status,
        created_at=_iso(item.created_at),
        claimed_at=None if item.claimed_at is None else _iso(item.claimed_at),
    )


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()
