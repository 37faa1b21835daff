"""Settle, start and claim.

An exchange that only completes, starts and claims is one call of a function (functions.sql).
Failures are settled by store/sql/settling.py, in the same transaction as the rest.
"""

from __future__ import annotations

from sprat.core import counters, jsontext, model, retry_rules
from sprat.core.leases import QUIET_PART
from sprat.core.record import Record
from sprat.store.postgres import marks
from sprat.store.postgres.arrays import texts
from sprat.store.sql.settling import settle

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
            one.item_id: settle(tx, one) for one in settlements if one.outcome != model.COMPLETE
        }
        answer, _ = _call(tx, call, done)
        others.update(zip([one.item_id for one in done], answer.settled, strict=True))
        settled = tuple([others[one.item_id] for one in settlements])
    else:
        settled = tuple([settle(tx, one) for one in settlements])
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
