"""Ending the claims of a worker that is dead or leaves."""

from __future__ import annotations

from sprat.core import model, retry_rules
from sprat.store.postgres import claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.postgres.transaction import PostgresTransaction

HELD_BY = """
SELECT seq, pool_name, grp, attempts, max_retries, ahead, suspect, given_back, transients, id
FROM sprat.work_pool
WHERE claimed_by = $1 AND status = 'claimed' AND ($2::text IS NULL OR pool_name = $2)
ORDER BY id FOR NO KEY UPDATE
"""
RENEWALS = "SELECT renewals FROM sprat.worker_registry WHERE worker_id = $1"


def release(
    tx: PostgresTransaction,
    worker_id: str,
    *,
    pool: str | None = None,
    started: Sequence[str] | None = None,
    reason: str | None = None,
) -> tuple[int, int]:
    """Free the items of a dead worker: how many, and how many of them were poisoned."""
    rows = tx.run(HELD_BY, (worker_id, pool)).fetchall()
    if not rows:
        return 0, 0
    tx.taken_from.add(worker_id)
    in_outage = (tx.one(RENEWALS, (worker_id,)) or 0) > 0
    poisoned = 0
    for seq, owner, group, *numbers, item_id in rows:
        counted = claims.tally_of(numbers)
        if started is not None and item_id in started and counted.ahead:
            counted = counted.replace(ahead=0, attempts=counted.attempts + 1)
        if not counted.ahead:
            tx.tally.happened(owner, "fail")
        verdict = retry_rules.after_crash(
            counted, never_started=started is not None, in_outage=in_outage
        )
        lost = f"worker {worker_id} was lost" + (f": {reason}" if reason else "")
        is_out = verdict.status == model.POISONED
        claims.end_claim(tx, seq, owner, group, verdict, None, lost if is_out else None)
        poisoned += is_out
    return len(rows), poisoned


def hand_back(tx: PostgresTransaction, worker_id: str) -> int:
    """Give back what a worker still holds when it leaves in good order."""
    rows = tx.run(HELD_BY, (worker_id, None)).fetchall()
    for seq, pool, group, *numbers, _ in rows:
        verdict = retry_rules.after_failure(claims.tally_of(numbers), model.HAND_BACK)
        claims.end_claim(tx, seq, pool, group, verdict, None)
    return len(rows)
