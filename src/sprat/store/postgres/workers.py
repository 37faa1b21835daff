"""The registry: workers come, give signs of life, and go. A verb that changes a worker locks its
row first; a claim shares that lock, so that nobody is given work and taken for dead at once."""

from __future__ import annotations

from sprat.core import jsontext, leases, model, payload
from sprat.core.errors import UnknownWorker
from sprat.store.backend import too_late
from sprat.store.postgres import marks, release
from sprat.store.postgres.rows import WORKER_COLUMNS
from sprat.store.sql import items
from sprat.store.sql.rows import worker_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.postgres.transaction import PostgresTransaction

GET = f"SELECT {WORKER_COLUMNS} FROM sprat.worker_registry WHERE worker_id = $1"
LIST = f"""
SELECT {WORKER_COLUMNS} FROM sprat.worker_registry
WHERE ($1::text[] IS NULL OR status = ANY ($1))
  AND ($2::text IS NULL OR pool_id = $2)
  AND ($3::float8 IS NULL OR last_heartbeat < $3)
  AND ($4::text IS NULL OR $4 = ANY (capabilities))
ORDER BY started_at, worker_id
"""
STATE = """
SELECT status, incarnation, metadata, pool_id, grp, capabilities
FROM sprat.worker_registry WHERE worker_id = $1 FOR NO KEY UPDATE
"""
REGISTER = """
INSERT INTO sprat.worker_registry AS w (worker_id, status, host, pid, capabilities, pool_id,
    started_at, last_heartbeat, incarnation, lease_seconds, lease_until, metadata)
VALUES ($1, 'active', $2, $3, $4::text[], $5, $6, $6, 1, $7, $6::float8 + $7, $8)
ON CONFLICT (worker_id) DO UPDATE SET status = 'active', host = $2, pid = $3,
    capabilities = $4::text[], pool_id = coalesce($5, w.pool_id), started_at = $6,
    last_heartbeat = $6, incarnation = w.incarnation + 1, lease_seconds = $7,
    lease_until = $6::float8 + $7, metadata = $8, reason = NULL, ended_at = NULL,
    current_task_id = NULL, renewals = 0
"""
BEAT = """
UPDATE sprat.worker_registry SET last_heartbeat = $2, lease_until = $2::float8 + lease_seconds,
       current_task_id = $3, metadata = coalesce($4, metadata), renewals = 0
WHERE worker_id = $1
"""
KEEP_ALIVE = """
WITH moment AS MATERIALIZED (SELECT sprat.clock() AS now), live AS (
    SELECT worker_id FROM sprat.worker_registry
    WHERE worker_id = ANY ($1::text[]) AND status IN ('starting', 'active', 'terminating')
    ORDER BY worker_id FOR NO KEY UPDATE)
UPDATE sprat.worker_registry w SET last_heartbeat = now, lease_until = now + w.lease_seconds,
       renewals = 0
FROM moment, live WHERE w.worker_id = live.worker_id RETURNING 1
"""
HOLDS = """
SELECT w.id, w.token FROM unnest($1::text[], $2::text[]) AS given (id, token)
JOIN sprat.work_pool w ON w.id = given.id AND w.token = given.token AND w.status = 'claimed'
"""
MOVE = """
UPDATE sprat.worker_registry SET status = $2, reason = coalesce($3, reason),
       ended_at = $4::float8,
       current_task_id = CASE WHEN $4::float8 IS NULL THEN current_task_id END
WHERE worker_id = $1
"""
STALE = """
SELECT worker_id, status, pool_id, grp, started_at FROM sprat.worker_registry
WHERE status IN ('starting', 'active', 'terminating') AND ($1::text IS NULL OR pool_id = $1)
  AND CASE WHEN $2::float8 IS NULL OR status = 'starting' THEN lease_until <= $3
      ELSE last_heartbeat < $3::float8 - $2 END
ORDER BY worker_id FOR NO KEY UPDATE
"""
# Launches that expire in one step have one cause, and count once.
ADD_LAUNCH_FAILURE = """
UPDATE sprat.scale_set SET launch_failures = launch_failures + 1, last_launch_failure_at = $3
WHERE pool_name = $1 AND grp = $2 AND last_launch_failure_at IS DISTINCT FROM $3
"""
RESET_LAUNCH_FAILURES = """
UPDATE sprat.scale_set SET launch_failures = 0
WHERE pool_name = $1 AND grp = $2 AND launch_failures > 0
"""
RING_ALL = "SELECT pg_notify('sprat.bell', '')"
NEVER_REGISTERED = "launched, but did not register in time"


def get(tx: PostgresTransaction, worker_id: str) -> model.WorkerRecord | None:
    row = tx.run(GET, (worker_id,)).fetchone()
    return None if row is None else worker_of(tx, row)


def find(tx: PostgresTransaction, which: model.WorkerFilter) -> list[model.WorkerRecord]:
    status = [which.status] if isinstance(which.status, str) else which.status
    stale = which.stale_threshold_seconds
    values = (
        None if status is None else list(status),
        which.pool_id,
        None if stale is None else tx.now - stale,
        which.capability,
    )
    return [worker_of(tx, row) for row in tx.run(LIST, values).fetchall()]


def register(tx: PostgresTransaction, worker: model.WorkerRegistration) -> model.WorkerRecord:
    row = tx.run(STATE, (worker.worker_id,)).fetchone()
    if worker.reserved and not _may_come(row, worker):
        return too_late(_required(tx, worker.worker_id), worker)
    if row is not None:
        release.release(tx, worker.worker_id, reason="it registered again")
    capabilities = list(worker.capabilities)
    if worker.reserved and row is not None:
        launched_with = row[5]
        capabilities = [*launched_with, *(c for c in capabilities if c not in launched_with)]
    tx.run(
        REGISTER,
        (
            *(worker.worker_id, worker.host, worker.pid, capabilities),
            *(worker.pool_id, tx.now, worker.lease_seconds, jsontext.dumps(dict(worker.metadata))),
        ),
    )
    if row is not None and row[0] == model.STARTING:
        tx.run(RESET_LAUNCH_FAILURES, (row[3], row[4]))
    registered = _required(tx, worker.worker_id)
    if row is None and registered.incarnation > 1:  # somebody else came in between
        release.release(tx, worker.worker_id, reason="it registered again")
    if worker.tasks and registered.pool_id is not None:
        items.unpark(tx, registered.pool_id, worker.tasks)
    return registered


def _may_come(row: tuple[Any, ...] | None, worker: model.WorkerRegistration) -> bool:
    """Whether a launched worker's reservation still stands."""
    if row is None:
        raise UnknownWorker(f"no launch of worker {worker.worker_id!r} is recorded")
    return bool(row[0] == model.STARTING)


def _required(tx: PostgresTransaction, worker_id: str) -> model.WorkerRecord:
    record = get(tx, worker_id)
    if record is None:
        raise UnknownWorker(f"worker {worker_id!r} is not registered: register it first")
    return record


def heartbeat(
    tx: PostgresTransaction, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
) -> model.Heartbeat:
    row = _state(tx, worker.worker_id)
    lost = lost_of(tx, holding)
    if worker.incarnation not in (None, row[1]):
        return model.Heartbeat(status=model.LOST, lost=lost)
    if row[0] in (model.ACTIVE, model.TERMINATING):
        merged = None if metadata is None else payload.merged_metadata(row[2], metadata)
        current = holding[0].item_id if holding else None
        tx.run(BEAT, (worker.worker_id, tx.now, current, merged))
    return model.Heartbeat(status=row[0], lost=lost)


def keep_alive(tx: PostgresTransaction, worker_ids: Sequence[str]) -> int:
    return len(tx.run(KEEP_ALIVE, (list(worker_ids),)).fetchall())


def lost_of(tx: PostgresTransaction, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
    if not holding:
        return ()
    ids, tokens = ([claim[place] for claim in holding] for place in (0, 1))
    held = set(tx.run(HOLDS, (ids, tokens)).fetchall())
    return tuple(claim.item_id for claim in holding if tuple(claim) not in held)


def _state(tx: PostgresTransaction, worker_id: str) -> tuple[Any, ...]:
    row = tx.run(STATE, (worker_id,)).fetchone()
    if row is None:
        raise UnknownWorker(f"worker {worker_id!r} is not registered: register it first")
    return row


def update_status(
    tx: PostgresTransaction,
    worker: WorkerRef,
    status: str,
    reason: str | None,
    started: Sequence[str] | None,
) -> bool:
    now, incarnation, _, pool, group, _ = _state(tx, worker.worker_id)
    if worker.incarnation not in (None, incarnation):
        return False
    if now == model.STARTING and status == model.TERMINATING:
        status = model.TERMINATED  # nobody is there yet to finish anything: the launch is given up
    if now == status:
        return True
    if now in model.ENDED or _rank(status) < _rank(now):
        return False
    if status == model.TERMINATED:
        release.hand_back(tx, worker.worker_id)
    elif status == model.LOST:
        release.release(tx, worker.worker_id, started=started, reason=reason)
        if now == model.STARTING:
            tx.run(ADD_LAUNCH_FAILURE, (pool, group, tx.now))
    ended = tx.now if status in model.ENDED else None
    tx.run(MOVE, (worker.worker_id, status, reason, ended))
    tx.run(RING_ALL)  # it may be waiting for work, in whatever pool, and has to leave
    return True


def _rank(status: str) -> int:
    return model.WORKER_STATUSES.index(status)


def reap(tx: PostgresTransaction, pool: str | None, threshold: float | None) -> model.Reaped:
    marks.check(tx)
    return reap_checked(tx, pool, threshold)


def reap_checked(
    tx: PostgresTransaction, pool: str | None, threshold: float | None
) -> model.Reaped:
    stale = tx.run(STALE, (pool, threshold, tx.now)).fetchall()
    reason = leases.why_lost(threshold)
    lost: list[str] = []
    expired: list[str] = []
    released = poisoned = 0
    for worker_id, status, owner, group, _ in sorted(stale, key=lambda row: (row[4], row[0])):
        if status == model.STARTING:
            expired.append(worker_id)
            tx.run(ADD_LAUNCH_FAILURE, (owner, group, tx.now))
            tx.run(MOVE, (worker_id, model.LOST, NEVER_REGISTERED, tx.now))
            continue
        lost.append(worker_id)
        tx.run(MOVE, (worker_id, model.LOST, reason, tx.now))
        freed, out = release.release(tx, worker_id, reason=reason)
        released += freed
        poisoned += out
    return model.Reaped(
        workers=tuple(lost), released=released, poisoned=poisoned, expired=tuple(expired)
    )
