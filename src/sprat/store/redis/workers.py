"""The verbs about workers."""

from __future__ import annotations

from sprat.core import jsontext, leases, model
from sprat.core.errors import UnknownWorker
from sprat.store.backend import too_late
from sprat.store.redis.items import named
from sprat.store.redis.rows import micros, pairs, signed, worker_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.redis.client import RedisClient

# A worker has to know soon that the store is away: past its lease a job must stop.
HEARTBEAT_PATIENCE_SECONDS = 0.5


def register(client: RedisClient, registration: model.WorkerRegistration) -> model.WorkerRecord:
    request = {
        "worker": registration.worker_id,
        "pool": registration.pool_id,
        "host": registration.host,
        "pid": registration.pid,
        "capabilities": list(registration.capabilities),
        "lease": micros(registration.lease_seconds),
        "metadata": pairs(registration.metadata),
        "reserved": registration.reserved,
        "tasks": list(registration.tasks),
    }
    try:
        late, row = client.run("register", jsontext.dumps(request))
    except UnknownWorker:
        raise UnknownWorker(
            f"no launch was reserved for worker {registration.worker_id!r}"
        ) from None
    return too_late(worker_of(row), registration) if late else worker_of(row)


def heartbeat(
    client: RedisClient, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
) -> model.Heartbeat:
    merged = jsontext.dumps(pairs(jsontext.loads(metadata) if metadata else {}))
    claims = _claims(holding)
    status, lost = client.run(
        "heartbeat", *_named(worker), merged, *claims, patience=HEARTBEAT_PATIENCE_SECONDS
    )
    return model.Heartbeat(status=status, lost=tuple(lost))


def lost(client: RedisClient, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
    return tuple(client.run("lost", *_claims(holding), patience=HEARTBEAT_PATIENCE_SECONDS))


def _claims(holding: Sequence[ClaimRef]) -> list[str]:
    return [part for claim in holding for part in (claim.item_id, claim.token or "")]


def keep_alive(client: RedisClient, worker_ids: Sequence[str]) -> int:
    return int(client.run("keep_alive", *set(worker_ids), patience=HEARTBEAT_PATIENCE_SECONDS))


def touch(client: RedisClient) -> None:
    client.run("touch", patience=HEARTBEAT_PATIENCE_SECONDS)


def update_status(
    client: RedisClient,
    worker: WorkerRef,
    status: str,
    reason: str | None,
    started: Sequence[str] | None,
) -> bool:
    return bool(
        client.run("update_status", *_named(worker), status, signed(reason), named(started))
    )


def _named(worker: WorkerRef) -> tuple[str, str | int]:
    return worker.worker_id, "" if worker.incarnation is None else worker.incarnation


def get(client: RedisClient, worker_id: str) -> model.WorkerRecord | None:
    _, rows = client.run("workers_list", worker_id, "", "")
    return worker_of(rows[0]) if rows else None


def find(client: RedisClient, which: model.WorkerFilter) -> list[model.WorkerRecord]:
    statuses = (which.status,) if isinstance(which.status, str) else which.status
    only_live = statuses is not None and all(status in model.LIVE for status in statuses)
    now, rows = client.run("workers_list", "", which.pool_id or "", int(only_live))
    workers = [worker_of(row) for row in rows]
    workers.sort(key=lambda worker: (worker.started_at, worker.worker_id.encode()))
    return [worker for worker in workers if _fits(worker, which, statuses, now / 1e6)]


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


def reap(client: RedisClient, pool: str | None, threshold: float | None) -> model.Reaped:
    patience = "" if threshold is None else micros(threshold)
    reason = leases.why_lost(threshold)
    lost, expired, released, poisoned = client.run("reap", pool or "", patience, reason)
    return model.Reaped(
        workers=tuple(lost), released=released, poisoned=poisoned, expired=tuple(expired)
    )
