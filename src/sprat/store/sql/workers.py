"""The registry: workers come, send heartbeats, and go. A verb that changes a worker locks its row
first; a claim shares that lock, so that no worker gets work and is taken for dead at once."""

from __future__ import annotations

from sprat.core import jsontext, leases, model, payload
from sprat.core.errors import UnknownWorker
from sprat.store.backend import too_late
from sprat.store.sql import items
from sprat.store.sql.rows import worker_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.sql.transaction import SqlTransaction

NEVER_REGISTERED = "launched, but did not register in time"


def get(tx: SqlTransaction, worker_id: str) -> model.WorkerRecord | None:
    row = tx.run(tx.sql.workers.GET, (worker_id,)).fetchone()
    return None if row is None else worker_of(tx, row)


def find(tx: SqlTransaction, which: model.WorkerFilter) -> list[model.WorkerRecord]:
    status = [which.status] if isinstance(which.status, str) else which.status
    stale = which.stale_threshold_seconds
    values = (
        None if status is None else tx.array(status),
        which.pool_id,
        None if stale is None else tx.now - stale,
        which.capability,
    )
    return [worker_of(tx, row) for row in tx.rows(tx.sql.workers.LIST, values)]


# -- registration -------------------------------------------------------------------------------


def register(tx: SqlTransaction, worker: model.WorkerRegistration) -> model.WorkerRecord:
    tx.touch()
    row = tx.run(tx.sql.workers.STATE, (worker.worker_id,)).fetchone()
    if worker.reserved and not _may_come(row, worker):
        return too_late(_required(tx, worker.worker_id), worker)
    if row is not None:
        _release(tx, worker.worker_id, "it registered again")
    capabilities = worker.capabilities
    if worker.reserved:
        launched_with = tx.texts(row[5])
        capabilities = (*launched_with, *(c for c in capabilities if c not in launched_with))
    tx.run(
        tx.sql.workers.REGISTER,
        (
            *(worker.worker_id, worker.host, worker.pid, tx.array(capabilities)),
            *(worker.pool_id, tx.now, worker.lease_seconds, jsontext.dumps(dict(worker.metadata))),
        ),
    )
    if row is not None and row[0] == model.STARTING:
        tx.run(tx.sql.workers.RESET_LAUNCH_FAILURES, (row[3], row[4]))
    record = _required(tx, worker.worker_id)
    if row is None and record.incarnation > 1:  # another process registered it in between
        _release(tx, worker.worker_id, "it registered again")
    if worker.tasks and record.pool_id is not None:
        items.unpark(tx, record.pool_id, worker.tasks)
    return record


def _may_come(row: tuple[Any, ...] | None, worker: model.WorkerRegistration) -> bool:
    """Whether a launched worker's reservation still stands."""
    if row is None:
        raise UnknownWorker(f"no launch of worker {worker.worker_id!r} is recorded")
    return bool(row[0] == model.STARTING)


def _required(tx: SqlTransaction, worker_id: str) -> model.WorkerRecord:
    record = get(tx, worker_id)
    if record is None:
        raise unregistered(worker_id)
    return record


def unregistered(worker_id: str) -> UnknownWorker:
    return UnknownWorker(f"worker {worker_id!r} is not registered: register it first")


def _release(tx: SqlTransaction, worker_id: str, reason: str) -> tuple[int, int]:
    from sprat.store.sql import releasing

    return releasing.release(tx, worker_id, reason=reason)


# -- heartbeats ---------------------------------------------------------------------------------


def heartbeat(
    tx: SqlTransaction, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
) -> model.Heartbeat:
    tx.touch()
    row = _state(tx, worker.worker_id)
    taken = lost(tx, holding)
    if worker.incarnation not in (None, row[1]):
        return model.Heartbeat(status=model.LOST, lost=taken)
    if row[0] in (model.ACTIVE, model.TERMINATING):
        merged = None if metadata is None else payload.merged_metadata(row[2], metadata)
        tx.run(tx.sql.workers.BEAT, (worker.worker_id, tx.now, merged))
    return model.Heartbeat(status=row[0], lost=taken)


def lost(tx: SqlTransaction, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
    if not holding:
        return ()
    held = set(tx.rows_of(tx.sql.workers.HELD, [claim.item_id for claim in holding]))
    return tuple([claim.item_id for claim in holding if tuple(claim) not in held])


def keep_alive(tx: SqlTransaction, worker_ids: Sequence[str]) -> int:
    tx.touch()
    return tx.changed(tx.sql.workers.KEEP_ALIVE, (tx.array(worker_ids), tx.known_now))


def _state(tx: SqlTransaction, worker_id: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = tx.run(tx.sql.workers.STATE, (worker_id,)).fetchone()
    if row is None:
        raise unregistered(worker_id)
    return row


# -- the end of a worker ------------------------------------------------------------------------


def update_status(
    tx: SqlTransaction,
    worker: WorkerRef,
    status: str,
    reason: str | None,
    started: Sequence[str] | None,
) -> bool:
    from sprat.store.sql import releasing

    tx.touch()
    now, incarnation, _, pool, group, _ = _state(tx, worker.worker_id)
    if worker.incarnation not in (None, incarnation):
        return False
    if now == model.STARTING and status == model.TERMINATING:
        status = model.TERMINATED  # no process is there yet: the launch is given up
    if now == status:
        return True
    if now in model.ENDED or _rank(status) < _rank(now):
        return False
    if status == model.TERMINATED:
        releasing.hand_back(tx, worker.worker_id)
    elif status == model.LOST:
        releasing.release(tx, worker.worker_id, started=started, reason=reason)
        if now == model.STARTING:
            tx.run(tx.sql.workers.ADD_LAUNCH_FAILURE, (pool, group, tx.now))
    ended = tx.now if status in model.ENDED else None
    tx.ends = True
    tx.run(tx.sql.workers.MOVE, (worker.worker_id, status, reason, ended))
    tx.wake(None)  # it may be waiting for work, in whatever pool, and has to leave
    return True


def _rank(status: str) -> int:
    return model.WORKER_STATUSES.index(status)


def reap(tx: SqlTransaction, pool: str | None, threshold: float | None) -> model.Reaped | None:
    tx.check_leases()
    return reap_checked(tx, pool, threshold)


def reap_checked(
    tx: SqlTransaction, pool: str | None, threshold: float | None
) -> model.Reaped | None:
    """None when it would not be fair yet."""
    stale = tx.rows(tx.sql.workers.STALE, (pool, threshold, tx.now))
    if stale and not tx.may_judge():
        return None
    reason = leases.why_lost(threshold)
    lost: list[str] = []
    expired: list[str] = []
    released = poisoned = 0
    for worker_id, status, owner, group, _ in sorted(stale, key=lambda row: (row[4], row[0])):
        if status == model.STARTING:
            expired.append(worker_id)
            tx.run(tx.sql.workers.ADD_LAUNCH_FAILURE, (owner, group, tx.now))
            tx.run(tx.sql.workers.MOVE, (worker_id, model.LOST, NEVER_REGISTERED, tx.now))
            continue
        lost.append(worker_id)
        tx.run(tx.sql.workers.MOVE, (worker_id, model.LOST, reason, tx.now))
        freed, out = _release(tx, worker_id, reason)
        released += freed
        poisoned += out
    return model.Reaped(
        workers=tuple(lost), released=released, poisoned=poisoned, expired=tuple(expired)
    )
