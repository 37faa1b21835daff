"""Ending the claims of a worker that is dead or leaves."""

from __future__ import annotations

from sprat.core import model, retry_rules
from sprat.store.sql.settling import attempts_of, end_claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.sql.transaction import SqlTransaction


def release(
    tx: SqlTransaction,
    worker_id: str,
    *,
    pool: str | None = None,
    started: Sequence[str] | None = None,
    reason: str | None = None,
) -> tuple[int, int]:
    """Free the items of a dead worker: how many, and how many of them were poisoned."""
    rows = tx.rows(tx.sql.claims.HELD_BY, (worker_id, pool))
    if not rows:
        return 0, 0
    tx.interrupt(worker_id)
    in_outage = (tx.one(tx.sql.claims.RENEWALS, (worker_id,)) or 0) > 0
    poisoned = 0
    for seq, item_id, owner, group, *numbers in rows:
        counted = attempts_of(numbers)
        if started is not None and item_id in started and counted.ahead:
            counted = counted.replace(ahead=0, attempts=counted.attempts + 1)
        if not counted.ahead:
            tx.tally.happened(owner, "fail")
        state = retry_rules.after_crash(
            counted, never_started=started is not None, in_outage=in_outage
        )
        lost = f"worker {worker_id} was lost" + (f": {reason}" if reason else "")
        is_out = state.status == model.POISONED
        end_claim(tx, seq, owner, group, state, None, lost if is_out else None)
        poisoned += is_out
    return len(rows), poisoned


def hand_back(tx: SqlTransaction, worker_id: str) -> int:
    """Give back what a worker still holds when it leaves in good order."""
    rows = tx.rows(tx.sql.claims.HELD_BY, (worker_id, None))
    if rows:
        tx.interrupt(worker_id)
    for seq, _, pool, group, *numbers in rows:
        state = retry_rules.after_failure(attempts_of(numbers), model.HAND_BACK)
        end_claim(tx, seq, pool, group, state, None)
    return len(rows)
