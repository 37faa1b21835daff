"""The end of a pool, in two transactions: its finished items, then the pool itself.

A push may come in between. In PostgreSQL it reads the pool's row without locking it. So the row is
deleted under a lock on the whole table `pool`: every transaction that has read it is over by then,
with the items that it stored, and every other one finds the pool gone and makes it anew.
"""

from __future__ import annotations

from sprat.core import counters
from sprat.store.sql import items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.sql.transaction import SqlTransaction


def forget_items(tx: SqlTransaction, pool: str, limit: int) -> bool | None:
    """Delete finished items. True: none is left; None: nothing was done, the pool is in use."""
    if _is_used(tx, pool):
        return None
    for group, status in tx.rows(tx.sql.pool_deletion.FORGET_ITEMS, (pool, limit)):
        tx.tally.count(pool, group, counters.COLUMN[status], -1)
    return tx.one(tx.sql.pool_deletion.HAS_ITEMS, (pool,)) is None


def forget_pool(tx: SqlTransaction, pool: str) -> bool:
    """Delete what is left of a pool without items. False: it was used in the meantime."""
    for statement in tx.sql.pool_deletion.LOCK:
        tx.run(statement)
    if _is_used(tx, pool) or tx.one(tx.sql.pool_deletion.HAS_ITEMS, (pool,)) is not None:
        return False
    for statement in tx.sql.pool_deletion.FORGET_POOL:
        tx.run(statement, (pool,))
    return True


def _is_used(tx: SqlTransaction, pool: str) -> bool:
    counts = items.counts(tx, pool)
    unfinished = counts.pending + counts.claimed + counts.backlog
    return bool(unfinished or tx.one(tx.sql.pool_deletion.HAS_WORKERS, (pool,)))
