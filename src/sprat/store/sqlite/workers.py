"""The registry: workers come, give signs of life, and go."""

from __future__ import annotations

from sprat.core import jsontext, leases, model, payload
from sprat.core.errors import UnknownWorker
from sprat.store.backend import too_late
from sprat.store.sql import items
from sprat.store.sql.rows import worker_of
from sprat.store.sqlite import claims, marks
from sprat.store.sqlite.rows import WORKER_COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.sqlite.busy_handler import Patience
    from sprat.store.sqlite.transaction import SqliteTransaction, WriteTransaction

GET = f"SELECT {WORKER_COLUMNS} FROM worker_registry WHERE worker_id = ?"
LIST = f"""
SELECT {WORKER_COLUMNS} FROM worker_registry
WHERE (?1 IS NULL OR status IN (SELECT value FROM json_each(?1)))
  AND (?2 IS NULL OR pool_id = ?2)
  AND (?3 IS NULL OR last_heartbeat < ?3)
  AND (?4 IS NULL OR EXISTS (SELECT 1 FROM json_each(capabilities) WHERE value = ?4))
ORDER BY started_at, worker_id
"""
STATE = """
SELECT status, incarnation, metadata, pool_id, grp, capabilities
FROM worker_registry WHERE worker_id = ?
"""
REGISTER = """
INSERT INTO worker_registry (worker_id, status, host, pid, capabilities, pool_id, started_at,
    last_heartbeat, incarnation, knows_tasks, lease_seconds, lease_until, metadata)
VALUES (?1, 'active', ?2, ?3, ?4, ?5, ?6, ?6, 1, 1, ?7, ?6 + ?7, ?8)
ON CONFLICT DO UPDATE SET status = 'active', host = ?2, pid = ?3,
    capabilities = ?4, pool_id = coalesce(?5, pool_id), started_at = ?6, last_heartbeat = ?6,
    incarnation = incarnation + 1, knows_tasks = incarnation + 1, lease_seconds = ?7,
    lease_until = ?6 + ?7, metadata = ?8,
    reason = NULL, ended_at = NULL, current_task_id = NULL, renewals = 0
"""
BEAT = """
UPDATE worker_registry SET last_heartbeat = ?2, lease_until = ?2 + lease_seconds,
       current_task_id = ?3, metadata = coalesce(?4, metadata), renewals = 0
WHERE worker_id = ?1
"""
KEEP_ALIVE = """
UPDATE worker_registry SET last_heartbeat = ?2, lease_until = ?2 + lease_seconds, renewals = 0
WHERE worker_id IN (SELECT value FROM json_each(?1))
  AND status IN ('starting', 'active', 'terminating')
"""
MOVE = """
UPDATE worker_registry SET status = ?2, reason = coalesce(?3, reason), ended_at = ?4,
       current_task_id = iif(?4 IS NULL, current_task_id, NULL)
WHERE worker_id = ?1
"""
STALE = """
SELECT worker_id, status FROM worker_registry
WHERE status IN ('starting', 'active', 'terminating') AND (?1 IS NULL OR pool_id = ?1)
  AND iif(?2 IS NULL OR status = 'starting', lease_until <= ?3, last_heartbeat < ?3 - ?2)
ORDER BY started_at, worker_id
"""
# Launches that expire in one step have one cause, and count once.
ADD_LAUNCH_FAILURE = """
UPDATE scale_set SET launch_failures = launch_failures + 1, last_launch_failure_at = ?3
WHERE pool_name = ?1 AND grp = ?2 AND last_launch_failure_at IS NOT ?3
"""
RESET_LAUNCH_FAILURES = """
UPDATE scale_set SET launch_failures = 0
WHERE pool_name = ?1 AND grp = ?2 AND launch_failures > 0
"""
NEVER_REGISTERED = "launched, but did not register in time"


def get(tx: SqliteTransaction, worker_id: str) -> model.WorkerRecord | None:
    row = tx.run(GET, (worker_id,)).fetchone()
    return None if row is None else worker_of(tx, row)


def find(tx: SqliteTransaction, which: model.WorkerFilter) -> list[model.WorkerRecord]:
    status = [which.status] if isinstance(which.status, str) else which.status
    stale = which.stale_threshold_seconds
    rows = tx.run(
        LIST,
        (
            None if status is None else jsontext.dumps(list(status)),
            which.pool_id,
            None if stale is None else tx.now - stale,
            which.capability,
        ),
    )
    return [worker_of(tx, row) for row in rows]


def register(tx: WriteTransaction, worker: model.WorkerRegistration) -> model.WorkerRecord:
    marks.touch(tx)
    row = tx.run(STATE, (worker.worker_id,)).fetchone()
    if worker.reserved and not _may_come(row, worker):
        return too_late(_required(tx, worker.worker_id), worker)
    if row is not None:
        claims.release(tx, worker.worker_id, reason="it registered again")
    capabilities = list(worker.capabilities)
    if worker.reserved:
        launched_with = jsontext.loads(row[5])
        capabilities = [*launched_with, *(c for c in capabilities if c not in launched_with)]
    tx.run(
        REGISTER,
        (
            *(worker.worker_id, worker.host, worker.pid, jsontext.dumps(capabilities)),
            *(worker.pool_id, tx.now, worker.lease_seconds, jsontext.dumps(dict(worker.metadata))),
        ),
    )
    if row is not None and row[0] == model.STARTING:
        tx.run(RESET_LAUNCH_FAILURES, (row[3], row[4]))
    record = _required(tx, worker.worker_id)
    if worker.tasks and record.pool_id is not None:
        items.unpark(tx, record.pool_id, worker.tasks)
    return record


def _may_come(row: tuple[Any, ...] | None, worker: model.WorkerRegistration) -> bool:
    """Whether a launched worker's reservation still stands."""
    if row is None:
        raise UnknownWorker(f"no launch of worker {worker.worker_id!r} is recorded")
    return bool(row[0] == model.STARTING)


def _required(tx: SqliteTransaction, worker_id: str) -> model.WorkerRecord:
    record = get(tx, worker_id)
    if record is None:
        raise UnknownWorker(f"worker {worker_id!r} is not registered: register it first")
    return record


def heartbeat(
    tx: WriteTransaction, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
) -> model.Heartbeat:
    marks.touch(tx)
    row = _state(tx, worker.worker_id)
    gone = lost(tx, holding)
    if worker.incarnation not in (None, row[1]):
        return model.Heartbeat(status=model.LOST, lost=gone)
    if row[0] in (model.ACTIVE, model.TERMINATING):
        merged = None if metadata is None else payload.merged_metadata(row[2], metadata)
        current = holding[0].item_id if holding else None
        tx.run(BEAT, (worker.worker_id, tx.now, current, merged))
    return model.Heartbeat(status=row[0], lost=gone)


def lost(tx: SqliteTransaction, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
    return tuple([claim.item_id for claim in holding if not claims.holds(tx, claim)])


def keep_alive(tx: WriteTransaction, worker_ids: Sequence[str]) -> int:
    marks.touch(tx)
    tx.run(KEEP_ALIVE, (jsontext.dumps(list(worker_ids)), tx.now))
    return int(tx.db.changes())


def _state(tx: SqliteTransaction, worker_id: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = tx.run(STATE, (worker_id,)).fetchone()
    if row is None:
        raise UnknownWorker(f"worker {worker_id!r} is not registered: register it first")
    return row


def update_status(
    tx: WriteTransaction,
    worker: WorkerRef,
    status: str,
    reason: str | None,
    started: Sequence[str] | None,
) -> bool:
    marks.touch(tx)
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
        claims.hand_back(tx, worker.worker_id)
    elif status == model.LOST:
        claims.release(tx, worker.worker_id, started=started, reason=reason)
        if now == model.STARTING:
            tx.run(ADD_LAUNCH_FAILURE, (pool, group, tx.now))
    ended = tx.now if status in model.ENDED else None
    tx.ends = True
    tx.run(MOVE, (worker.worker_id, status, reason, ended))
    tx.rings = True
    return True


def _rank(status: str) -> int:
    return model.WORKER_STATUSES.index(status)


def reap(
    tx: WriteTransaction, pool: str | None, threshold: float | None, patience: Patience
) -> model.Reaped | None:
    """None when it would not be fair yet."""
    marks.touch(tx)
    stale = tx.run(STALE, (pool, threshold, tx.now)).fetchall()
    if stale and not patience.is_fair(tx):
        return None
    reason = leases.why_lost(threshold)
    lost: list[str] = []
    expired: list[str] = []
    released = poisoned = 0
    for worker_id, status in stale:
        if status == model.STARTING:
            expired.append(worker_id)
            _, _, _, owner, group, _ = _state(tx, worker_id)
            tx.run(ADD_LAUNCH_FAILURE, (owner, group, tx.now))
            tx.run(MOVE, (worker_id, model.LOST, NEVER_REGISTERED, tx.now))
            continue
        lost.append(worker_id)
        tx.run(MOVE, (worker_id, model.LOST, reason, tx.now))
        freed, out = claims.release(tx, worker_id, reason=reason)
        released += freed
        poisoned += out
    return model.Reaped(
        workers=tuple(lost), released=released, poisoned=poisoned, expired=tuple(expired)
    )
