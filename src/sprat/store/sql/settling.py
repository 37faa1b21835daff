"""Settling one claim: what follows for the item is decided by core/retry_rules.py."""

from __future__ import annotations

from sprat.core import counters, model, retry_rules
from sprat.core.payload import settings_from
from sprat.store.sql.items import unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.store.backend import ClaimRef
    from sprat.store.sql.transaction import SqlTransaction

UNCOUNTED = (model.HAND_BACK, model.PARK)  # neither a run nor a failure


def settle(tx: SqlTransaction, settlement: model.Settlement) -> bool:
    row = tx.run(tx.sql.claims.HELD, (settlement.item_id, settlement.token)).fetchone()
    if row is None:
        return _is_repetition(tx, settlement)
    seq, pool, group, claimed_at, tenant, *numbers = row
    outcome, seconds = settlement.outcome, settlement.seconds
    if tenant:
        tx.wake(pool)  # another item of this tenant may run now
    if outcome not in UNCOUNTED:
        tx.tally.took(pool, "run", tx.now - claimed_at if seconds is None else seconds)
        tx.tally.happened(pool, "done" if outcome == model.COMPLETE else "fail")
    if outcome == model.COMPLETE:
        tx.run(tx.sql.claims.COMPLETE_HELD, (seq, settlement.result, tx.now, pool))
        tx.tally.moved(pool, group, counters.CLAIMED, counters.DONE)
    else:
        bound = _max_transient(tx, pool) if outcome == model.TRANSIENT else None
        state = retry_rules.after_failure(attempts_of(numbers), outcome, bound)
        end_claim(tx, seq, pool, group, state, settlement)
    return True


def _max_transient(tx: SqlTransaction, pool: str) -> int | None:
    return settings_from(tx.one(tx.sql.claims.SETTINGS, (pool,)) or "{}").max_transient


def end_claim(
    tx: SqlTransaction,
    seq: int,
    pool: str,
    group: str,
    state: retry_rules.NextState,
    settlement: model.Settlement | None,
    error: str | None = None,
) -> None:
    """Write the item's next state; `settlement` is what ended the claim, if one did."""
    poisoned = state.status == model.POISONED
    delay = settlement.delay if settlement and not poisoned else 0.0
    hold = None
    if settlement and settlement.outcome == model.PARK:
        hold = settlement.error or ""
    if settlement and settlement.outcome not in UNCOUNTED:
        error = settlement.error
    tx.run(
        tx.sql.claims.PUT_BACK,
        (
            *(pool, seq, state.status, state.attempts, state.suspect, state.given_back),
            error,
            tx.now + delay,
            tx.now + delay if delay else None,
            tx.now if poisoned else None,
            *((settlement.token, settlement.outcome) if settlement else (None, None)),
            *(state.transients, hold),
        ),
    )
    to = counters.POISONED if poisoned else counters.PENDING
    tx.tally.moved(pool, group, counters.CLAIMED, to)
    if delay:
        tx.tally.count(pool, group, counters.DELAYED, 1)
    if not poisoned:
        tx.wake(pool)


def _is_repetition(tx: SqlTransaction, settlement: model.Settlement) -> bool:
    """Whether this settle already happened and only its reply was lost."""
    token, outcome, result = last_settled(tx, settlement.item_id)
    if settlement.token is None or (token, outcome) != (settlement.token, settlement.outcome):
        return False
    return outcome != model.COMPLETE or bool(result == settlement.result)


def last_settled(tx: SqlTransaction, item_id: str) -> tuple[Any, ...]:
    """Token, outcome and result of the last settle; raises UnknownItem if there is no such item."""
    row: tuple[Any, ...] | None = tx.run(tx.sql.claims.LAST_SETTLED, (item_id,)).fetchone()
    if row is None:
        raise unknown(item_id)
    return row


def save(
    tx: SqlTransaction,
    claim: ClaimRef,
    checkpoint: str | None,
    progress: float | None,
    note: str | None,
) -> bool:
    if tx.changed(tx.sql.claims.SAVE, (claim.item_id, claim.token, checkpoint, progress, note)):
        return True
    last_settled(tx, claim.item_id)  # raises if there is no such item
    return False


def attempts_of(numbers: Sequence[int]) -> retry_rules.AttemptCounts:
    attempts, max_retries, ahead, suspect, given_back, transients = numbers
    return retry_rules.AttemptCounts(
        attempts=attempts,
        max_retries=max_retries,
        ahead=ahead,
        suspect=bool(suspect),
        given_back=given_back,
        transients=transients,
    )
