"""The store in a Redis or Valkey server. Each verb is one Lua script (scripts.py, lua/*.lua).

All keys begin with {store}, the name of the store in braces: they fall into one slot of a cluster,
so that every verb is atomic, whatever pools and workers it touches.

    {store}:items      hash   id -> the item: pool, status, attempts, claim... (rows.lua)
    {store}:data       hash   id -> payload, JSON text, after "@", task, newline if it has a task
    {store}:more       hash   id -> error, checkpoint, progress...: what few items have
    {store}:held:WORKER  set  id: what a worker holds
    {store}:seq        the number of items ever pushed: their order of arrival
    {store}:pools      set    names
    {store}:workers    hash   id -> the worker;  {store}:live  zset  id by age
    {store}:format     the number of this layout (health.py)
    {store}:clock      hash   how far the store's clock is ahead of the server's, and the mark:
                              when the store last worked, and in which run (marks.lua)
    {store}:documents:KIND, :names:KIND, :expiries, :buckets
    {store}:pool:NAME:about      hash  settings, version, pause, turn, scaling pass
    {store}:pool:NAME:order      zset  id by arrival, all items
    {store}:pool:NAME:ready      zset  lanes side by side (lanes.lua)
    {store}:pool:NAME:delayed    zset  id by due time
    {store}:pool:NAME:parked     zset  items that wait for a worker that knows their task
    {store}:pool:NAME:done, :poisoned, :cancelled   zset  id by end, for retention
    {store}:pool:NAME:counts     hash  group, status -> n
    {store}:pool:NAME:keys       hash  idempotency key -> digest of the payload, id
    {store}:pool:NAME:running, :turns      hash  tenant -> claimed items, last turn
    {store}:pool:NAME:stats      hash  bucket of 10 or 900 seconds -> sums, and -> arrivals
    {store}:pool:NAME:fresh      hash  the sums of the bucket of now
    {store}:pool:NAME:totals     hash  sums of the buckets that were rolled up, decisions
    {store}:pool:NAME:waiting    zset  waiters by when they began to wait (wakeup.py)
    {store}:pool:NAME:live, :ended   zset  workers of the pool
    {store}:pool:NAME:scales     hash  group -> scale set;  :decisions  list, newest first
"""

from __future__ import annotations

from sprat.core.errors import InvalidInput, StoreUnavailable
from sprat.store.backend import Backend
from sprat.store.lost_claims import LostClaims
from sprat.store.redis import items as stored
from sprat.store.redis import pools, wakeup
from sprat.store.redis import workers as registry
from sprat.store.redis.address import parse
from sprat.store.redis.client import RedisClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from socket import socket

    from sprat.core import model
    from sprat.store.backend import ClaimRef, WorkerRef


class RedisBackend(Backend):
    def __init__(
        self,
        url: str,
        *,
        connect: Callable[[str, int], socket] | None = None,
        password: str | Callable[[], str] | None = None,
    ) -> None:
        from sprat.store.redis import diagnostics

        address = parse(url)
        if connect is not None and address.path is not None:
            raise InvalidInput("connect= has no use with redis+unix://, which names its socket")
        if connect is not None or password is not None:
            password = address.password if password is None else password
            address = address.replace(connect=connect, password=password)
        self._client = RedisClient(address)
        self._lost_claims = LostClaims()
        self._wakeup_channels = wakeup.WakeupChannels(self._client)
        self._cancel_channels = wakeup.CancelChannels(self._client)
        try:
            diagnostics.check(self._client)
        except BaseException:
            self.close()
            raise

    # -- items ------------------------------------------------------------------------------

    def push(self, pool: str, items: Sequence[model.NewItem]) -> list[str]:
        return stored.push(self._client, pool, items)

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
        request = self._lost_claims.request(pool, worker, claim)
        try:
            answer = stored.exchange(
                self._client,
                pool,
                worker,
                settlements=settlements,
                start=start,
                announced=announced,
                request=request,
            )
        except StoreUnavailable:
            self._lost_claims.keep(pool, worker, *request[:2])
            raise
        if request[2]:
            return self._lost_claims.answered(self, pool, worker, claim, answer)
        return answer

    def save(
        self,
        claim: ClaimRef,
        *,
        checkpoint: str | None = None,
        progress: float | None = None,
        note: str | None = None,
    ) -> bool:
        return stored.save(self._client, claim, checkpoint, progress, note)

    def release(self, pool: str, worker_id: str, started: Sequence[str] | None = None) -> int:
        return stored.release(self._client, pool, worker_id, started)

    def cancel(self, pool: str, item_ids: Sequence[str]) -> int:
        return stored.steer(self._client, "cancel", pool, item_ids)

    def requeue(self, pool: str, item_ids: Sequence[str]) -> int:
        return stored.steer(self._client, "requeue", pool, item_ids)

    def item(self, item_id: str) -> model.WorkItem:
        return stored.get(self._client, item_id)

    def pools_of(self, item_ids: Sequence[str]) -> list[str | None]:
        return stored.pools_of(self._client, item_ids)

    def items(
        self, pool: str, status: str | None, limit: int, after: str | None
    ) -> list[model.WorkItem]:
        return stored.page(self._client, pool, status, limit, after)

    def find(
        self, pool: str, which: model.ItemFilter, limit: int, after: str | None
    ) -> model.Found:
        return stored.find(self._client, pool, which, limit, after)

    def counts(self, pool: str) -> model.Counts:
        return stored.counts(self._client, pool)

    def wait(self, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
        return wakeup.wait(self._client, self._wakeup_channels, pool, worker, seconds)

    # -- pools ------------------------------------------------------------------------------

    def pools(self) -> list[str]:
        return pools.names(self._client)

    def pool_state(self, pool: str) -> model.PoolState:
        return pools.state(self._client, pool)

    def configure(self, pool: str, settings: str, version: int | None) -> bool:
        return pools.configure(self._client, pool, settings, version)

    def pause(self, pool: str, seconds: float | None, reason: str | None = None) -> None:
        pools.pause(self._client, pool, seconds, reason)

    def hold_off(self, pool: str, seconds: float, reason: str | None = None) -> None:
        pools.hold_off(self._client, pool, seconds, reason)

    def request_check(self, pool: str, max_workers: int) -> bool:
        return pools.request_check(self._client, pool, max_workers)

    def begin_check(self, pool: str) -> None:
        pools.begin_check(self._client, pool)

    def purge(self, pool: str, limit: int) -> int:
        return pools.purge(self._client, pool, limit)

    def delete_pool(self, pool: str, limit: int) -> bool | None:
        return pools.delete_pool(self._client, pool, limit)

    # -- workers ----------------------------------------------------------------------------

    def register(self, worker: model.WorkerRegistration) -> model.WorkerRecord:
        return registry.register(self._client, worker)

    def heartbeat(
        self, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
    ) -> model.Heartbeat:
        return registry.heartbeat(self._client, worker, metadata, holding)

    def keep_alive(self, worker_ids: Sequence[str]) -> int:
        return registry.keep_alive(self._client, worker_ids)

    def touch(self) -> None:
        registry.touch(self._client)

    def lost(self, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
        self._cancel_channels.clear()
        return registry.lost(self._client, holding)

    def cancel_bell(self, worker: WorkerRef) -> int | None:
        return self._cancel_channels.descriptor(worker.worker_id)

    def update_status(
        self,
        worker: WorkerRef,
        status: str,
        *,
        reason: str | None = None,
        started: Sequence[str] | None = None,
    ) -> bool:
        return registry.update_status(self._client, worker, status, reason, started)

    def worker(self, worker_id: str) -> model.WorkerRecord | None:
        return registry.get(self._client, worker_id)

    def workers(self, which: model.WorkerFilter) -> list[model.WorkerRecord]:
        return registry.find(self._client, which)

    def reap(self, pool: str | None, threshold: float | None) -> model.Reaped:
        return registry.reap(self._client, pool, threshold)

    # -- scaling (imported on first use: a worker needs none of it) ---------------------------

    def observe(self, pool: str, group: str | None, window: float) -> model.Snapshot:
        from sprat.store.redis import scaling

        return scaling.observe(self._client, pool, group, window)

    def record(self, version: int, decision: model.Decision) -> model.RecordedDecision | None:
        from sprat.store.redis import scaling

        return scaling.record(self._client, version, decision)

    def decisions(self, pool: str, group: str | None, limit: int) -> list[model.RecordedDecision]:
        from sprat.store.redis import scaling

        return scaling.decisions(self._client, pool, group, limit)

    def stats(self, pool: str, seconds: float) -> model.Stats:
        from sprat.store.redis import scaling

        return scaling.stats(self._client, pool, seconds)

    def history(self, pool: str, seconds: float) -> list[model.StatsBucket]:
        from sprat.store.redis import scaling

        return scaling.history(self._client, pool, seconds)

    def totals(self, pool: str) -> model.Totals:
        from sprat.store.redis import scaling

        return scaling.totals(self._client, pool)

    # -- documents and rates ------------------------------------------------------------------

    def document(self, kind: str, name: str) -> model.Document | None:
        from sprat.store.redis import documents

        return documents.get(self._client, kind, name)

    def documents(self, kind: str, limit: int, after: str | None) -> list[model.Document]:
        from sprat.store.redis import documents

        return documents.page(self._client, kind, limit, after)

    def put(
        self, kind: str, name: str, body: str | None, version: int | None, seconds: float | None
    ) -> bool:
        from sprat.store.redis import documents

        return documents.put(self._client, kind, name, body, version, seconds)

    def take(self, name: str, amount: float, rate: float, burst: float) -> float:
        from sprat.store.redis import documents

        return documents.take(self._client, name, amount, rate, burst)

    # -- the store itself -------------------------------------------------------------------

    def describe(self) -> dict[str, object]:
        from sprat.store.redis import diagnostics

        return diagnostics.describe(self._client)

    def close(self) -> None:
        self._wakeup_channels.close()
        self._cancel_channels.close()
        self._client.close()
