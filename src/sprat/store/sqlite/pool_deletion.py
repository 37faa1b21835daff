"""The end of a pool."""

from __future__ import annotations

from sprat.core import counters
from sprat.store.sqlite import items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.sqlite.transaction import WriteTransaction

HAS_WORKERS = """
SELECT 1 FROM worker_registry
WHERE pool_id = ? AND status IN ('starting', 'active', 'terminating') LIMIT 1
"""
FORGET_ITEMS = """
DELETE FROM work_pool WHERE seq IN (SELECT seq FROM work_pool WHERE pool_name = ? LIMIT ?)
RETURNING grp, status
"""
FORGET_POOL = (
    "DELETE FROM worker_registry WHERE pool_id = ?",
    "DELETE FROM scale_set WHERE pool_name = ?",
    "DELETE FROM decision WHERE pool_name = ?",
    "DELETE FROM tenant_turn WHERE pool_name = ?",
    "DELETE FROM pool_stats WHERE pool_name = ?",
    "DELETE FROM pool_count WHERE pool_name = ?",
    "DELETE FROM pool WHERE name = ?",
)


def delete_pool(tx: WriteTransaction, pool: str, limit: int) -> bool | None:
    counts = items.counts(tx, pool)
    if counts.pending or counts.claimed or counts.backlog or tx.run(HAS_WORKERS, (pool,)).get:
        return None
    rows = tx.run(FORGET_ITEMS, (pool, limit)).fetchall()
    if len(rows) < counts.total:
        for group, status in rows:
            tx.tally.count(pool, group, counters.COLUMN[status], -1)
        return False
    for statement in FORGET_POOL:
        tx.run(statement, (pool,))
    return True
