"""The registry of workers: registrations, heartbeats, and the ends of workers."""

from __future__ import annotations

from sprat.core import jsontext, leases, model
from sprat.core.errors import UnknownWorker
from sprat.store.backend import Backend, too_late
from sprat.store.redis.items import named
from sprat.store.redis.rows import micros, pairs, signed, worker_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.redis.client import RedisClient
    from sprat.store.redis.wakeup import CancelChannels

# A worker has to know soon that the store is away: past its lease a job must stop.
HEARTBEAT_PATIENCE_SECONDS = 0.5


class RedisWorkers(Backend):
    """The verbs about workers."""

    _client: RedisClient
    _cancel_channels: CancelChannels

    def register(self, worker: model.WorkerRegistration) -> model.WorkerRecord:
        request = {
            "worker": worker.worker_id,
            "pool": worker.pool_id,
            "host": worker.host,
            "pid": worker.pid,
            "capabilities": list(worker.capabilities),
            "lease": micros(worker.lease_seconds),
            "metadata": pairs(worker.metadata),
            "reserved": worker.reserved,
            "tasks": list(worker.tasks),
        }
        try:
            late, row = self._client.run("register", jsontext.dumps(request))
        except UnknownWorker:
            raise UnknownWorker(f"no launch was reserved for worker {worker.worker_id!r}") from None
        return too_late(worker_of(row), worker) if late else worker_of(row)

    def heartbeat(
        self, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
    ) -> model.Heartbeat:
        merged = jsontext.dumps(pairs(jsontext.loads(metadata) if metadata else {}))
        claims = _claims(holding)
        status, lost = self._client.run(
            "heartbeat", *_named(worker), merged, *claims, patience=HEARTBEAT_PATIENCE_SECONDS
        )
        return model.Heartbeat(status=status, lost=tuple(lost))

    def lost(self, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
        self._cancel_channels.clear()
        claims = _claims(holding)
        return tuple(self._client.run("lost", *claims, patience=HEARTBEAT_PATIENCE_SECONDS))

    def cancel_bell(self, worker: WorkerRef) -> int | None:
        return self._cancel_channels.descriptor(worker.worker_id)

    def keep_alive(self, worker_ids: Sequence[str]) -> int:
        ids = set(worker_ids)
        return int(self._client.run("keep_alive", *ids, patience=HEARTBEAT_PATIENCE_SECONDS))

    def touch(self) -> None:
        self._client.run("touch", patience=HEARTBEAT_PATIENCE_SECONDS)

    def update_status(
        self,
        worker: WorkerRef,
        status: str,
        *,
        reason: str | None = None,
        started: Sequence[str] | None = None,
    ) -> bool:
        change = (status, signed(reason), named(started))
        return bool(self._client.run("update_status", *_named(worker), *change))

    def worker(self, worker_id: str) -> model.WorkerRecord | None:
        _, rows = self._client.run("workers_list", worker_id, "", "")
        return worker_of(rows[0]) if rows else None

    def workers(self, which: model.WorkerFilter) -> list[model.WorkerRecord]:
        statuses = (which.status,) if isinstance(which.status, str) else which.status
        only_live = statuses is not None and all(status in model.LIVE for status in statuses)
        now, rows = self._client.run("workers_list", "", which.pool_id or "", int(only_live))
        workers = [worker_of(row) for row in rows]
        workers.sort(key=lambda worker: (worker.started_at, worker.worker_id.encode()))
        return [worker for worker in workers if _fits(worker, which, statuses, now / 1e6)]

    def reap(self, pool: str | None, threshold: float | None) -> model.Reaped:
        patience = "" if threshold is None else micros(threshold)
        reason = leases.why_lost(threshold)
        lost, expired, released, poisoned = self._client.run("reap", pool or "", patience, reason)
        return model.Reaped(
            workers=tuple(lost), released=released, poisoned=poisoned, expired=tuple(expired)
        )


def _claims(holding: Sequence[ClaimRef]) -> list[str]:
    return [part for claim in holding for part in (claim.item_id, claim.token or "")]


def _named(worker: WorkerRef) -> tuple[str, str | int]:
    return worker.worker_id, "" if worker.incarnation is None else worker.incarnation


def _fits(
    worker: model.WorkerRecord,
    which: model.WorkerFilter,
    statuses: Sequence[str] | None,
    now: float,
) -> bool:
    if statuses is not None and worker.status not in statuses:
        return False
    if which.capability is not None and which.capability not in worker.capabilities:
        return False
    threshold = which.stale_threshold_seconds
    return threshold is None or now - worker.last_heartbeat > threshold
