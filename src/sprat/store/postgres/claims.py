"""Claims: taking items and settling them.

An exchange that only completes, starts and claims is one call of a function (functions.sql).
Failures are settled here, by the rules of retry_rules.py, in the same transaction as the rest.
"""

from __future__ import annotations

from sprat.core import counters, jsontext, model, retry_rules
from sprat.core.errors import UnknownItem
from sprat.core.leases import QUIET_PART
from sprat.core.payload import settings_from
from sprat.core.record import Record
from sprat.store.postgres import marks
from sprat.store.postgres.arrays import texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.postgres.connections import Sessions
    from sprat.store.postgres.transaction import PostgresTransaction

EXCHANGE = """
SELECT * FROM sprat.exchange_v2($1, $2, $3::int, $4::text[], $5::text[], $6::text[], $7, $8,
                                $9::int, $10, $11::int, $12::bool, $13::float8, $14::float8)
"""
LOCK_WORKER = "SELECT 1 FROM sprat.worker_registry WHERE worker_id = $1 FOR SHARE"
HELD = """
SELECT seq, pool_name, grp, attempts, max_retries, ahead, suspect, given_back, transients,
       claimed_at, tenant
FROM sprat.work_pool WHERE id = $1 AND token = $2 AND status = 'claimed' FOR NO KEY UPDATE
"""
PUT_BACK = """
UPDATE sprat.work_pool SET status = $3, attempts = $4, suspect = $5, given_back = $6,
       error = coalesce($7, error), ready_at = $8, run_at = $9, finished_at = $10,
       transients = $13, hold = $14,
       claimed_by = CASE WHEN $10::float8 IS NOT NULL THEN claimed_by END, ahead = 0,
       last_token = coalesce($11, last_token), last_outcome = coalesce($12, last_outcome),
       token = NULL
WHERE pool_name = $1 AND seq = $2
"""
LAST_SETTLED = """
SELECT CASE status WHEN 'done' THEN token ELSE last_token END,
       CASE status WHEN 'done' THEN 'complete' ELSE last_outcome END, result
FROM sprat.work_pool WHERE id = $1
"""
SAVE = """
UPDATE sprat.work_pool SET checkpoint = coalesce($3, checkpoint),
       progress = coalesce($4::float8, progress), progress_note = coalesce($5, progress_note)
WHERE id = $1 AND token = $2 AND status = 'claimed' RETURNING 1
"""
SETTINGS = "SELECT settings FROM sprat.pool WHERE name = $1"

UNCOUNTED = (model.HAND_BACK, model.PARK)  # neither a run nor a failure


class ExchangeCall(Record):
    """One exchange as the function takes it. The tokens of its claims begin with `token`, which
    is drawn before the first try: a repetition finds what that one claimed."""

    pool: str
    worker_id: str | None
    incarnation: int | None
    start_id: str | None
    start_token: str | None
    claim: int
    token: str
    ahead: int
    again: bool = False  # it may have been carried out before


def call_for(
    pool: str,
    worker: WorkerRef | None,
    start: ClaimRef | None,
    announced: bool,
    request: tuple[str, int, bool],
) -> ExchangeCall:
    worker_id, incarnation = worker or (None, None)
    start_id, start_token = start or (None, None)
    later = retry_rules.ANNOUNCED if announced else retry_rules.UNANNOUNCED
    name, claim, again = request
    claim = claim if worker else 0
    return ExchangeCall.of(
        (pool, worker_id, incarnation, start_id, start_token, claim, name + "-", later, again)
    )


def settle_joined(
    connections: Sessions,
    pool: str,
    settlements: Sequence[model.Settlement],
    connection: object,
) -> tuple[bool, ...]:
    call = call_for(pool, None, None, False, ("", 0, False))
    return connections.join(connection, _exchange, call, settlements).settled


def exchange(
    connections: Sessions, call: ExchangeCall, settlements: Sequence[model.Settlement]
) -> model.Exchange:
    if not _is_simple(settlements):
        marks.note(connections)
        return connections.write(_exchange, call, settlements)
    connections.write_due_notes()  # before, not after: what was claimed can start at once
    done = connections.repeatable(
        lambda tx: _at_once(tx, call, settlements, connections.touch_seconds(), QUIET_PART)
    )
    while done is None:
        connections.write(marks.renew, wait=False)
        done = connections.repeatable(lambda tx: _at_once(tx, call, settlements))
    answer, stats, now = done
    if stats:
        connections.hold(stats, now)
    return answer


def _is_simple(settlements: Sequence[model.Settlement]) -> bool:
    """Whether one call can settle them: all completed, none named twice."""
    if len(settlements) < 2:
        return not settlements or settlements[0].outcome == model.COMPLETE
    return all(one[2] == model.COMPLETE for one in settlements) and len(
        {one[0] for one in settlements}
    ) == len(settlements)


def _at_once(
    tx: PostgresTransaction,
    call: ExchangeCall,
    settlements: Sequence[model.Settlement],
    *mark: float | None,
) -> tuple[model.Exchange, list[counters.Event], float] | None:
    """None: nothing was done, for the store may have been away."""
    answer, now = _call(tx, call, settlements, *mark)
    return None if now is None else (answer, tx.tally.stats, now)


def _exchange(
    tx: PostgresTransaction, call: ExchangeCall, settlements: Sequence[model.Settlement]
) -> model.Exchange:
    """Settle one by one, in order, then the rest."""
    if call.worker_id is not None:
        tx.run(LOCK_WORKER, (call.worker_id,))  # before items, as everywhere
    if len({one.item_id for one in settlements}) == len(settlements):
        done = [one for one in settlements if one.outcome == model.COMPLETE]
        others = {
            one.item_id: _settle(tx, one) for one in settlements if one.outcome != model.COMPLETE
        }
        answer, _ = _call(tx, call, done)
        others.update(zip([one.item_id for one in done], answer.settled, strict=True))
        settled = tuple([others[one.item_id] for one in settlements])
    else:
        settled = tuple([_settle(tx, one) for one in settlements])
        answer, _ = _call(tx, call, ())
    return answer.replace(settled=settled)


def _call(
    tx: PostgresTransaction,
    call: ExchangeCall,
    completions: Sequence[model.Settlement],
    touch: float | None = None,
    quiet: float | None = None,
) -> tuple[model.Exchange, float | None]:
    """Complete, start and claim: one call of the function. The answer, and the store's time."""
    pool, worker_id, incarnation, start_id, start_token, claim, token, ahead, again = call
    ids = tokens = results = None
    if completions:
        columns = list(zip(*completions, strict=True))
        ids, tokens = texts(columns[0]), texts(columns[1])
        results = texts(columns[3]) if any(columns[3]) else None
    values = (
        *(pool, worker_id, incarnation, ids, tokens, results, start_id, start_token),
        *(claim, token, ahead, again or tx.again, touch, quiet),
    )
    rows = tx.rows(EXCHANGE, values)
    now, places, claimed_at, started, version = rows[0][:5]
    settled = _settled(tx, pool, completions, places or (), claimed_at or (), now)
    took = tx.tally.took
    items = []
    for row in rows[1:]:
        took(pool, "wait", now - row[5])
        items.append(_claimed(row, pool, worker_id, now))
    return model.Exchange.of((settled, started, tuple(items), version)), now


def _settled(
    tx: PostgresTransaction,
    pool: str,
    completions: Sequence[model.Settlement],
    places: Sequence[int],
    claimed_at: Sequence[float],
    now: float,
) -> tuple[bool, ...]:
    if claimed_at:
        tx.tally.happened(pool, "done", len(claimed_at))
        for place, since in zip(places, claimed_at, strict=False):
            seconds = completions[place - 1][6]
            tx.tally.took(pool, "run", now - since if seconds is None else seconds)
    if len(places) == len(completions):
        return (True,) * len(places)
    chosen = set(places)
    return tuple([place + 1 in chosen for place in range(len(completions))])


def _claimed(row: tuple[Any, ...], pool: str, worker_id: str | None, now: float) -> model.WorkItem:
    item_id, data, attempts, retries, priority, tenant, group, key, *rest = row[6:]
    epoch, token, checkpoint, progress, note, error, created_at, *counted = rest
    return model.WorkItem.of(
        (
            *(item_id, pool, jsontext.loads(data), model.CLAIMED, attempts, retries),
            *(priority, tenant or None, group or None, key, worker_id, epoch, token),
            None if checkpoint is None else jsontext.loads(checkpoint),
            *(progress, note, None, error, created_at, None, now, None),
            *(*counted, None),
        )
    )


def save(
    tx: PostgresTransaction,
    claim: ClaimRef,
    checkpoint: str | None,
    progress: float | None,
    note: str | None,
) -> bool:
    if tx.one(SAVE, (claim.item_id, claim.token, checkpoint, progress, note)):
        return True
    _last_settled(tx, claim.item_id)  # says so if there is no such item
    return False


# -- settling -----------------------------------------------------------------------------------


def _settle(tx: PostgresTransaction, one: model.Settlement) -> bool:
    held = tx.run(HELD, (one.item_id, one.token)).fetchone()
    if held is None:
        return _is_repetition(tx, one)
    seq, pool, group, *numbers, claimed_at, tenant = held
    if one.outcome == model.COMPLETE:
        alone = ExchangeCall.of((pool, None, None, None, None, 0, "", 0, False))
        return _call(tx, alone, (one,))[0].settled[0]
    if tenant:
        tx.rings.add(pool)  # another item of this tenant may run now
    if one.outcome not in UNCOUNTED:
        tx.tally.took(pool, "run", tx.now - claimed_at if one.seconds is None else one.seconds)
        tx.tally.happened(pool, "fail")
    most = _max_transient(tx, pool) if one.outcome == model.TRANSIENT else None
    verdict = retry_rules.after_failure(tally_of(numbers), one.outcome, most)
    end_claim(tx, seq, pool, group, verdict, one)
    return True


def _max_transient(tx: PostgresTransaction, pool: str) -> int | None:
    return settings_from(tx.one(SETTINGS, (pool,)) or "{}").max_transient


def end_claim(
    tx: PostgresTransaction,
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
    hold = None
    if one and one.outcome == model.PARK:
        hold = one.error or ""
    elif one:
        error = one.error
    tx.run(
        PUT_BACK,
        (
            *(pool, seq, verdict.status, verdict.attempts, verdict.suspect, verdict.given_back),
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
    if not poisoned:
        tx.rings.add(pool)


def _is_repetition(tx: PostgresTransaction, one: model.Settlement) -> bool:
    """Whether this settle already happened and only its reply was lost."""
    token, outcome, result = _last_settled(tx, one.item_id)
    if one.token is None or token != one.token or outcome != one.outcome:
        return False
    return one.outcome != model.COMPLETE or result == one.result


def _last_settled(tx: PostgresTransaction, item_id: str) -> tuple[Any, ...]:
    row = tx.run(LAST_SETTLED, (item_id,)).fetchone()
    if row is None:
        raise UnknownItem(f"the store has no item {item_id!r}")
    return row


def tally_of(numbers: Sequence[int]) -> retry_rules.AttemptCounts:
    attempts, max_retries, ahead, suspect, given_back, transients = numbers
    return retry_rules.AttemptCounts(
        attempts=attempts,
        max_retries=max_retries,
        ahead=ahead,
        suspect=bool(suspect),
        given_back=given_back,
        transients=transients,
    )
