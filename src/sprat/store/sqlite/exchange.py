"""Settle, start and claim in one transaction: any exchange that exchange_fast_path.py leaves."""

from __future__ import annotations

from sprat.core import counters, jsontext, model, retry_rules
from sprat.core.leases import TOUCH_SECONDS
from sprat.core.payload import settings_from
from sprat.core.runtime import runtime
from sprat.store.sql.settling import last_settled, settle
from sprat.store.sql.workers import unregistered
from sprat.store.sqlite import lanes, marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.sqlite.transaction import WriteTransaction

# The worker, the pool, and whether a delayed item is due: all that decides whether to look.
GATE = """
SELECT w.status, w.incarnation, w.capabilities, w.lease_seconds, w.lease_until,
       w.renewals, (SELECT value FROM meta WHERE name = 'mark'), coalesce(p.version, 0),
       p.name, p.paused_until, p.has_lanes, p.has_tenants, p.turn, p.settings,
       (SELECT 1 FROM work_pool
        WHERE pool_name = ?2 AND status = 'pending' AND run_at <= ?3 LIMIT 1)
FROM worker_registry w LEFT JOIN pool p ON p.name = ?2 WHERE w.worker_id = ?1
"""
RENEW = """
UPDATE worker_registry SET last_heartbeat = ?1, lease_until = ?2, renewals = 0 WHERE worker_id = ?3
"""
CLAIM = """
UPDATE work_pool SET status = 'claimed', claimed_by = ?2, claimed_at = ?3, token = ?4,
       epoch = epoch + 1, attempts = attempts + (?5 = 0), ahead = ?5, room = NULL
WHERE seq = ?1
"""
CLEAR_HOLD = "UPDATE work_pool SET hold = NULL WHERE seq = ?"
START = """
UPDATE work_pool SET attempts = attempts + 1, ahead = 0, claimed_at = ?3
WHERE id = ?1 AND token = ?2 AND status = 'claimed' AND ahead > 0
"""
HOLDS = "SELECT 1 FROM work_pool WHERE id = ? AND token = ? AND status = 'claimed'"


def exchange(
    tx: WriteTransaction,
    pool: str,
    worker: WorkerRef | None,
    *,
    settlements: Sequence[model.Settlement],
    start: ClaimRef | None,
    claim: int,
    announced: bool,
) -> model.Exchange:
    settled = tuple([settle(tx, settlement) for settlement in settlements])
    started = start is None or _start(tx, start)
    items: tuple[model.WorkItem, ...] = ()
    version = None
    if worker and claim:
        rows, version = _choose(tx, pool, worker, claim)
        items = _claim(tx, pool, worker, rows, announced)
    return model.Exchange.of((settled, started, items, version))


# -- claiming -----------------------------------------------------------------------------------


def _claim(
    tx: WriteTransaction,
    pool: str,
    worker: WorkerRef,
    rows: list[tuple[Any, ...]],
    announced: bool,
) -> tuple[model.WorkItem, ...]:
    if not rows:
        return ()
    later = retry_rules.ANNOUNCED if announced else retry_rules.UNANNOUNCED
    random = runtime.random_bytes(8 * len(rows)).hex()
    worker_id, now = worker.worker_id, tx.now
    changes: list[tuple[object, ...]] = []
    items: list[model.WorkItem] = []
    for place, row in enumerate(rows):
        token = random[16 * place : 16 * place + 16]
        changes.append((row[lanes.SEQ], worker_id, now, token, later if place else 0))
        items.append(_claimed(row, pool, worker_id, now, token))
        tx.tally.took(pool, "wait", now - row[lanes.READY_AT])
        tx.tally.moved(pool, row[lanes.GROUP], counters.PENDING, counters.CLAIMED)
    tx.run_many(CLAIM, changes)
    for row in rows:
        if row[lanes.HOLD] is not None:
            tx.run(CLEAR_HOLD, (row[lanes.SEQ],))
    return tuple(items)


def _choose(
    tx: WriteTransaction, pool: str, worker: WorkerRef, n: int
) -> tuple[list[tuple[Any, ...]], int]:
    """The items that this worker may have now, and the version of the pool's settings."""
    gate = _gate(tx, pool, worker.worker_id)
    status, incarnation, capabilities, lease_seconds, lease_until, renewals, _, version = gate[:8]
    if status != model.ACTIVE or worker.incarnation not in (None, incarnation):
        return [], version
    if renewals or lease_until - tx.now < lease_seconds / 2:
        tx.run(RENEW, (tx.now, tx.now + lease_seconds, worker.worker_id))
    return _next(tx, pool, n, capabilities, gate[8:]), version


def _gate(tx: WriteTransaction, pool: str, worker_id: str) -> tuple[Any, ...]:
    about = (worker_id, pool, tx.now)
    gate: tuple[Any, ...] | None = tx.run(GATE, about).fetchone()
    if gate is None:
        raise unregistered(worker_id)
    if gate[6] is None or tx.now - gate[6] > TOUCH_SECONDS:
        marks.touch(tx)  # may renew this worker's lease too
        gate = tuple(tx.run(GATE, about).fetchone())
    return gate


def _next(
    tx: WriteTransaction, pool: str, n: int, capabilities: str, pool_state: tuple[Any, ...]
) -> list[tuple[Any, ...]]:
    name, paused_until, has_lanes, has_tenants, turn, settings, is_due = pool_state
    if name is None or (paused_until is not None and paused_until > tx.now):
        return []
    if is_due:
        lanes.promote(tx, pool)
    if not has_lanes:
        return lanes.in_order(tx, pool, n)
    turns = lanes.Turns(tx, pool, turn, settings_from(settings))
    rows = lanes.in_turn(tx, pool, n, {"", *jsontext.loads(capabilities)}, turns)
    if has_tenants:
        turns.keep([row[lanes.TENANT] for row in rows])
    return rows


def _claimed(
    row: tuple[Any, ...], pool: str, worker_id: str, now: float, token: str
) -> model.WorkItem:
    """The item as its worker sees it: attempts already counts the start that follows."""
    _, _, _, attempts, max_retries, tenant, group, item_id, data, priority, key, epoch = row[:12]
    checkpoint, progress, note, error, created_at, given_back, task, transients, _ = row[12:]
    return model.WorkItem.of(
        (
            *(item_id, pool, jsontext.loads(data), model.CLAIMED, attempts + 1, max_retries),
            *(priority, tenant or None, group or None, key, worker_id, epoch + 1, token),
            None if checkpoint is None else jsontext.loads(checkpoint),
            *(progress, note, None, error, created_at, None, now, None, given_back),
            *(task, transients, None),
        )
    )


def _start(tx: WriteTransaction, claim: ClaimRef) -> bool:
    tx.run(START, (claim.item_id, claim.token, tx.now))
    if tx.db.changes() or tx.one(HOLDS, (claim.item_id, claim.token)):
        return True
    last_settled(tx, claim.item_id)  # raises if there is no such item
    return False
