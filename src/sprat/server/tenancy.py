"""A store as one tenant sees it: its own pools, workers and documents, and no trace of others.

Every name of a tenant has the tenant in front (`acme.papers`), added on the way in and taken off
on the way out, here and nowhere else: a route cannot forget it. A key without a tenant is the
operator's, who sees the whole store with all names in full.

Ids that the store itself makes (items, reserved workers) have no tenant in front. For those the
pool they belong to decides; another tenant's are unknown here, in the same words as those that do
not exist. A reserved worker is shown as `~ID`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from sprat.core import model, payload
from sprat.core.errors import InvalidInput, UnknownItem
from sprat.server.quotas import KnownPools
from sprat.store.backend import Backend, ClaimRef, WorkerRef

RESERVED = "~"
PUBLIC_FACTS = ("kind", "durability", "synced", "clock_ahead_seconds")  # about a store


class TenantBackend(Backend):
    """The verbs of `sprat.store.backend`, within one tenant's part of a store."""

    def __init__(self, backend: Backend, tenant: str, pools: KnownPools | None = None) -> None:
        self._inner = backend
        self._pools = pools  # those there are; None: no limit on their number
        self._tenant = tenant
        self._front = f"{tenant}."

    # -- names ------------------------------------------------------------------------------

    def pool_in(self, pool: str) -> str:
        name = self._front + pool
        if len(name) > payload.MAX_NAME_CHARS:
            raise InvalidInput(f"the pool name {pool[:60]!r} is too long")
        return name

    def _made_in(self, pool: str) -> str:
        """As `pool_in`, for a verb that makes the pool if there is none."""
        name = self.pool_in(pool)
        if self._pools is not None:
            self._pools.must_accept(self._front, name)
        return name

    def worker_in(self, worker_id: str) -> str:
        """A worker's id as the store has it."""
        if worker_id.startswith(RESERVED):
            found = self._inner.worker(worker_id[1:])
            if found is not None and self._is_ours(found.pool_id):
                return found.worker_id
        full = self._front + worker_id
        if len(full) > payload.MAX_NAME_CHARS:
            raise InvalidInput(f"the worker id {worker_id[:60]!r} is too long")
        return full

    def _worker_out(self, worker_id: str) -> str:
        if worker_id.startswith(self._front):
            return worker_id[len(self._front) :]
        return RESERVED + worker_id

    def _ref(self, worker: WorkerRef) -> WorkerRef:
        return worker.replace(worker_id=self.worker_in(worker.worker_id))

    def _is_ours(self, pool: str | None) -> bool:
        return pool is not None and pool.startswith(self._front)

    def _short(self, pool: str) -> str:
        return pool[len(self._front) :]

    def _item(self, item: model.WorkItem) -> model.WorkItem:
        by = item.claimed_by
        return item.replace(
            pool=self._short(item.pool), claimed_by=None if by is None else self._worker_out(by)
        )

    def _worker(self, worker: model.WorkerRecord) -> model.WorkerRecord:
        pool = worker.pool_id
        return worker.replace(
            worker_id=self._worker_out(worker.worker_id),
            pool_id=self._short(pool) if pool is not None and self._is_ours(pool) else None,
        )

    def _decision(self, made: model.RecordedDecision) -> model.RecordedDecision:
        return made.replace(
            pool=self._short(made.pool),
            launched=tuple(map(self._worker_out, made.launched)),
            drained=tuple(map(self._worker_out, made.drained)),
        )

    def _must_be_ours(self, item_ids: Iterable[str]) -> None:
        ids = list(dict.fromkeys(item_ids))
        pools = self._inner.pools_of(ids) if ids else ()
        for item_id, pool in zip(ids, pools, strict=True):
            if not self._is_ours(pool):
                raise unknown(item_id)

    def _own(self, item_id: str) -> str:
        """The id of a new item. Clients choose ids, so that a push can be repeated; the tenant is
        part of it here, so that the ids of other tenants neither collide nor show. It begins with
        the time, as it came: neighbours in time stay neighbours in the index."""
        digest = hashlib.sha256(f"{self._tenant}.{item_id}".encode()).hexdigest()
        return item_id[:12] + digest[:16]

    # -- items ------------------------------------------------------------------------------

    def push(self, pool: str, items: Sequence[model.NewItem]) -> list[str]:
        return self._inner.push(
            self._made_in(pool),
            [item.replace(id=self._own(item.id), tenant=self._tenant) for item in items],
        )

    def exchange(
        self,
        pool: str,
        worker: WorkerRef | None = None,
        *,
        settlements: Sequence[model.Settlement] = (),
        start: ClaimRef | None = None,
        claim: int = 0,
        announced: bool = False,
    ) -> model.Exchange:
        answer = self._inner.exchange(
            self.pool_in(pool),
            None if worker is None else self._ref(worker),
            settlements=settlements,
            start=start,
            claim=claim,
            announced=announced,
        )
        # Whoever has a token has the claim; without one, whose item it is must not show.
        failed = [s for s, ok in zip(settlements, answer.settled, strict=True) if not ok]
        self._must_be_ours(s.item_id for s in failed)
        if start is not None and not answer.started:
            self._must_be_ours((start.item_id,))
        return answer.replace(items=tuple(map(self._item, answer.items)))

    def save(
        self,
        claim: ClaimRef,
        *,
        checkpoint: str | None = None,
        progress: float | None = None,
        note: str | None = None,
    ) -> bool:
        self._must_be_ours((claim.item_id,))
        return self._inner.save(claim, checkpoint=checkpoint, progress=progress, note=note)

    def release(self, pool: str, worker_id: str, started: Sequence[str] | None = None) -> int:
        return self._inner.release(self.pool_in(pool), self.worker_in(worker_id), started)

    def cancel(self, pool: str, item_ids: Sequence[str]) -> int:
        self._must_be_ours(item_ids)
        return self._inner.cancel(self.pool_in(pool), item_ids)

    def requeue(self, pool: str, item_ids: Sequence[str]) -> int:
        self._must_be_ours(item_ids)
        return self._inner.requeue(self.pool_in(pool), item_ids)

    def item(self, item_id: str) -> model.WorkItem:
        found = self._inner.item(item_id)
        if not self._is_ours(found.pool):
            raise unknown(item_id)
        return self._item(found)

    def pools_of(self, item_ids: Sequence[str]) -> list[str | None]:
        found = self._inner.pools_of(item_ids)
        return [self._short(pool) if pool and self._is_ours(pool) else None for pool in found]

    def items(
        self, pool: str, status: str | None, limit: int, after: str | None
    ) -> list[model.WorkItem]:
        if after is not None:
            self._must_be_ours((after,))
        return list(map(self._item, self._inner.items(self.pool_in(pool), status, limit, after)))

    def find(
        self, pool: str, which: model.ItemFilter, limit: int, after: str | None
    ) -> model.Found:
        if after is not None:
            self._must_be_ours((after,))
        answer = self._inner.find(self.pool_in(pool), which, limit, after)
        return answer.replace(items=tuple(map(self._item, answer.items)))

    def counts(self, pool: str) -> model.Counts:
        return self._inner.counts(self.pool_in(pool))

    def wait(self, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
        ref = None if worker is None else self._ref(worker)
        return self._inner.wait(self.pool_in(pool), ref, seconds)

    # -- pools ------------------------------------------------------------------------------

    def pools(self) -> list[str]:
        return [self._short(pool) for pool in self._inner.pools() if self._is_ours(pool)]

    def pool_state(self, pool: str) -> model.PoolState:
        return self._inner.pool_state(self.pool_in(pool)).replace(name=pool)

    def configure(self, pool: str, settings: str, version: int | None) -> bool:
        return self._inner.configure(self._made_in(pool), settings, version)

    def pause(self, pool: str, seconds: float | None, reason: str | None = None) -> None:
        self._inner.pause(self._made_in(pool), seconds, reason)

    def hold_off(self, pool: str, seconds: float, reason: str | None = None) -> None:
        self._inner.hold_off(self._made_in(pool), seconds, reason)

    def request_check(self, pool: str, max_workers: int) -> bool:
        return self._inner.request_check(self.pool_in(pool), max_workers)

    def begin_check(self, pool: str) -> None:
        self._inner.begin_check(self.pool_in(pool))

    def purge(self, pool: str, limit: int) -> int:
        return self._inner.purge(self.pool_in(pool), limit)

    def delete_pool(self, pool: str, limit: int) -> bool | None:
        return self._inner.delete_pool(self.pool_in(pool), limit)

    # -- workers ----------------------------------------------------------------------------

    def register(self, worker: model.WorkerRegistration) -> model.WorkerRecord:
        pool = worker.pool_id
        return self._worker(
            self._inner.register(
                worker.replace(
                    worker_id=self.worker_in(worker.worker_id),
                    pool_id=None if pool is None else self.pool_in(pool),
                )
            )
        )

    def heartbeat(
        self, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
    ) -> model.Heartbeat:
        return self._inner.heartbeat(self._ref(worker), metadata, holding)

    def keep_alive(self, worker_ids: Sequence[str]) -> int:
        return self._inner.keep_alive([self.worker_in(one) for one in worker_ids])

    def touch(self) -> None:
        self._inner.touch()

    def lost(self, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
        return self._inner.lost(holding)

    def update_status(
        self,
        worker: WorkerRef,
        status: str,
        *,
        reason: str | None = None,
        started: Sequence[str] | None = None,
    ) -> bool:
        return self._inner.update_status(self._ref(worker), status, reason=reason, started=started)

    def worker(self, worker_id: str) -> model.WorkerRecord | None:
        found = self._inner.worker(self.worker_in(worker_id))
        return None if found is None else self._worker(found)

    def workers(self, which: model.WorkerFilter) -> list[model.WorkerRecord]:
        pool = which.pool_id
        inner = which.replace(pool_id=None if pool is None else self.pool_in(pool))
        return [
            self._worker(worker)
            for worker in self._inner.workers(inner)
            if worker.worker_id.startswith(self._front) or self._is_ours(worker.pool_id)
        ]

    def reap(self, pool: str | None, threshold: float | None) -> model.Reaped:
        # Workers of no pool are left to the server, which reaps the whole store now and then.
        pools = self.pools() if pool is None else [pool]
        found = [self._inner.reap(self.pool_in(name), threshold) for name in pools]
        return model.Reaped(
            workers=tuple(self._worker_out(w) for one in found for w in one.workers),
            expired=tuple(self._worker_out(w) for one in found for w in one.expired),
            released=sum(one.released for one in found),
            poisoned=sum(one.poisoned for one in found),
        )

    # -- scaling ----------------------------------------------------------------------------

    def observe(self, pool: str, group: str | None, window: float) -> model.Snapshot:
        seen = self._inner.observe(self.pool_in(pool), group, window)
        return seen.replace(pool=pool, workers=tuple(map(self._worker, seen.workers)))

    def record(self, version: int, decision: model.Decision) -> model.RecordedDecision | None:
        made = self._inner.record(
            version,
            decision.replace(
                pool=self.pool_in(decision.pool),
                drain=tuple(map(self.worker_in, decision.drain)),
            ),
        )
        return None if made is None else self._decision(made)

    def decisions(self, pool: str, group: str | None, limit: int) -> list[model.RecordedDecision]:
        return list(map(self._decision, self._inner.decisions(self.pool_in(pool), group, limit)))

    def stats(self, pool: str, seconds: float) -> model.Stats:
        return self._inner.stats(self.pool_in(pool), seconds)

    def history(self, pool: str, seconds: float) -> list[model.StatsBucket]:
        return self._inner.history(self.pool_in(pool), seconds)

    def totals(self, pool: str) -> model.Totals:
        return self._inner.totals(self.pool_in(pool))

    # -- documents and rates ------------------------------------------------------------------

    def document(self, kind: str, name: str) -> model.Document | None:
        found = self._inner.document(self._front + kind, name)
        return None if found is None else found.replace(kind=kind)

    def documents(self, kind: str, limit: int, after: str | None) -> list[model.Document]:
        found = self._inner.documents(self._front + kind, limit, after)
        return [document.replace(kind=kind) for document in found]

    def put(
        self, kind: str, name: str, body: str | None, version: int | None, seconds: float | None
    ) -> bool:
        return self._inner.put(self._front + kind, name, body, version, seconds)

    def take(self, name: str, amount: float, rate: float, burst: float) -> float:
        return self._inner.take(self._front + name, amount, rate, burst)

    # -- the store itself -------------------------------------------------------------------

    def describe(self) -> dict[str, object]:
        """Where the data is, is the operator's business."""
        found = self._inner.describe()
        return {name: found[name] for name in PUBLIC_FACTS if name in found}

    def close(self) -> None:
        """The store is not ours to close."""


def unknown(item_id: str) -> UnknownItem:
    return UnknownItem(f"the store has no item {item_id!r}")
