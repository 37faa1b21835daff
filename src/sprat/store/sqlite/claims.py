"""Claims: taking items, settling them, and freeing those of the dead."""

from __future__ import annotations

import os

from sprat.core import counters, jsontext, model, retry_rules
from sprat.core.errors import UnknownItem, UnknownWorker
from sprat.core.leases import TOUCH_SECONDS
from sprat.core.payload import settings_from
from sprat.store.sqlite import lanes, marks
from sprat.store.sqlite.rows import LIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.sqlite.transaction import SqliteTransaction, WriteTransaction

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
COMPLETE = """
UPDATE work_pool SET status = 'done', result = ?2, error = NULL, finished_at = ?3,
       attempts = attempts + (ahead > 0), ahead = 0, suspect = 0
WHERE seq = ?1
"""
HELD = """
SELECT seq, pool_name, grp, claimed_at, tenant, attempts, max_retries, ahead, suspect, given_back,
       transients
FROM work_pool WHERE id = ? AND token = ? AND status = 'claimed'
"""
PUT_BACK = """
UPDATE work_pool SET status = ?2, attempts = ?3, suspect = ?4, given_back = ?5,
       error = coalesce(?6, error), ready_at = ?7, run_at = ?8, finished_at = ?9,
       claimed_by = iif(?9 IS NULL, NULL, claimed_by), ahead = 0,
       last_token = coalesce(?10, last_token), last_outcome = coalesce(?11, last_outcome),
       token = NULL, transients = ?12, hold = ?13
WHERE seq = ?1
"""
RENEWALS = "SELECT renewals FROM worker_registry WHERE worker_id = ?"
SETTINGS = "SELECT settings FROM pool WHERE name = ?"
UNCOUNTED = (model.HAND_BACK, model.PARK)  # neither a run nor a failure
LAST_SETTLED = """
SELECT iif(status = 'done', token, last_token), iif(status = 'done', 'complete', last_outcome),
       result
FROM work_pool WHERE id = ?
"""
START = """
UPDATE work_pool SET attempts = attempts + 1, ahead = 0, claimed_at = ?3
WHERE id = ?1 AND token = ?2 AND status = 'claimed' AND ahead > 0
"""
HOLDS = "SELECT 1 FROM work_pool WHERE id = ? AND token = ? AND status = 'claimed'"
HELD_BY = f"""
SELECT seq, id, pool_name, grp, attempts, max_retries, ahead, suspect, given_back,
       transients
FROM work_pool WHERE claimed_by = ?1 AND {LIVE} AND (?2 IS NULL OR pool_name = ?2)
ORDER BY seq
"""
SAVE = """
UPDATE work_pool SET checkpoint = coalesce(?3, checkpoint), progress = coalesce(?4, progress),
       progress_note = coalesce(?5, progress_note)
WHERE id = ?1 AND token = ?2 AND status = 'claimed'
"""


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
    settled = tuple([_settle(tx, one) for one in settlements])
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
    random = os.urandom(8 * len(rows)).hex()
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
        raise UnknownWorker(f"worker {worker_id!r} is not registered: register it first")
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
    if tx.db.changes() or holds(tx, claim):
        return True
    _last_settled(tx, claim.item_id)  # says so if there is no such item
    return False


def holds(tx: SqliteTransaction, claim: ClaimRef) -> bool:
    return tx.run(HOLDS, (claim.item_id, claim.token)).fetchone() is not None


def save(
    tx: WriteTransaction,
    claim: ClaimRef,
    checkpoint: str | None,
    progress: float | None,
    note: str | None,
) -> bool:
    tx.run(SAVE, (claim.item_id, claim.token, checkpoint, progress, note))
    if tx.db.changes():
        return True
    _last_settled(tx, claim.item_id)  # says so if there is no such item
    return False


# -- settling -----------------------------------------------------------------------------------


def _settle(tx: WriteTransaction, one: model.Settlement) -> bool:
    held = tx.run(HELD, (one.item_id, one.token)).fetchone()
    if held is None:
        return _is_repetition(tx, one)
    seq, pool, group, claimed_at, tenant, *numbers = held
    if tenant:
        tx.rings = True  # another item of this tenant may run now
    if one.outcome not in UNCOUNTED:
        tx.tally.took(pool, "run", tx.now - claimed_at if one.seconds is None else one.seconds)
    if one.outcome == model.COMPLETE:
        tx.run(COMPLETE, (seq, one.result, tx.now))
        tx.tally.moved(pool, group, counters.CLAIMED, counters.DONE)
        tx.tally.happened(pool, "done")
    else:
        if one.outcome not in UNCOUNTED:
            tx.tally.happened(pool, "fail")
        bound = _max_transient(tx, pool) if one.outcome == model.TRANSIENT else None
        verdict = retry_rules.after_failure(_tally(numbers), one.outcome, bound)
        _end_claim(tx, seq, pool, group, verdict, one)
    return True


def _max_transient(tx: WriteTransaction, pool: str) -> int | None:
    return settings_from(tx.run(SETTINGS, (pool,)).get).max_transient


def _end_claim(
    tx: WriteTransaction,
    seq: int,
    pool: str,
    group: str,
    verdict: retry_rules.NextState,
    one: model.Settlement | None,
    error: str | None = None,
) -> None:
    """Write the item's next state; `one` is the settlement that ended the claim, if one did."""
    poisoned = verdict.status == model.POISONED
    delay = one.delay if one and not poisoned else 0.0
    hold = (one.error or "") if one and one.outcome == model.PARK else None
    if one and one.outcome not in UNCOUNTED:
        error = one.error
    tx.run(
        PUT_BACK,
        (
            *(seq, verdict.status, verdict.attempts, verdict.suspect, verdict.given_back),
            error,
            tx.now + delay,
            tx.now + delay if delay else None,
            tx.now if poisoned else None,
            *((one.token, one.outcome) if one else (None, None)),
            *(verdict.transients, hold),
        ),
    )
    tx.tally.moved(
        pool, group, counters.CLAIMED, counters.POISONED if poisoned else counters.PENDING
    )
    if delay:
        tx.tally.count(pool, group, counters.DELAYED, 1)
    tx.rings = tx.rings or not poisoned


def _is_repetition(tx: WriteTransaction, one: model.Settlement) -> bool:
    """Whether this settle already happened and only its reply was lost."""
    token, outcome, result = _last_settled(tx, one.item_id)
    if one.token is None or token != one.token or outcome != one.outcome:
        return False
    return one.outcome != model.COMPLETE or result == one.result


def _last_settled(tx: WriteTransaction, item_id: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = tx.run(LAST_SETTLED, (item_id,)).fetchone()
    if row is None:
        raise UnknownItem(f"the store has no item {item_id!r}")
    return row


# -- releasing ----------------------------------------------------------------------------------


def release(
    tx: WriteTransaction,
    worker_id: str,
    *,
    pool: str | None = None,
    started: Sequence[str] | None = None,
    reason: str | None = None,
) -> tuple[int, int]:
    """Free the items of a dead worker: how many, and how many of them were poisoned."""
    rows = tx.run(HELD_BY, (worker_id, pool)).fetchall()
    in_outage = bool(rows) and (tx.run(RENEWALS, (worker_id,)).get or 0) > 0
    tx.takes = tx.takes or bool(rows)
    poisoned = 0
    for seq, item_id, owner, group, *numbers in rows:
        counted = _tally(numbers)
        if started is not None and item_id in started and counted.ahead:
            counted = counted.replace(ahead=0, attempts=counted.attempts + 1)
        if not counted.ahead:
            tx.tally.happened(owner, "fail")
        verdict = retry_rules.after_crash(
            counted, never_started=started is not None, in_outage=in_outage
        )
        lost = f"worker {worker_id} was lost" + (f": {reason}" if reason else "")
        is_out = verdict.status == model.POISONED
        _end_claim(tx, seq, owner, group, verdict, None, lost if is_out else None)
        poisoned += is_out
    return len(rows), poisoned


def hand_back(tx: WriteTransaction, worker_id: str) -> int:
    """Give back what a worker still holds when it leaves in good order."""
    rows = tx.run(HELD_BY, (worker_id, None)).fetchall()
    tx.takes = tx.takes or bool(rows)
    for seq, _, pool, group, *numbers in rows:
        verdict = retry_rules.after_failure(_tally(numbers), model.HAND_BACK)
        _end_claim(tx, seq, pool, group, verdict, None)
    return len(rows)


def _tally(numbers: Sequence[int]) -> retry_rules.AttemptCounts:
    attempts, max_retries, ahead, suspect, given_back, transients = numbers
    return retry_rules.AttemptCounts(
        attempts=attempts,
        max_retries=max_retries,
        ahead=ahead,
        suspect=bool(suspect),
        given_back=given_back,
        transients=transients,
    )
