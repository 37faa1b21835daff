"""The end of a pool.

A push reads the pool's row without locking it. So the row is deleted under a lock on the whole
table `pool`: every transaction that has read it is over by then, with the items that it stored, and
every other one finds the pool gone and makes it anew. The lock is held for a few short statements.
"""

from __future__ import annotations

from sprat.core import counters
from sprat.store.postgres import items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.postgres.connections import Sessions
    from sprat.store.postgres.transaction import PostgresTransaction

# While this lock is waited for, all other transactions wait too: it is given up, and tried again.
BE_BRIEF = "SELECT set_config('lock_timeout', '500ms', true)"
LOCK = "LOCK TABLE sprat.pool IN ACCESS EXCLUSIVE MODE"
HAS_WORKERS = """
SELECT 1 FROM sprat.worker_registry
WHERE pool_id = $1 AND status IN ('starting', 'active', 'terminating') LIMIT 1
"""
FORGET_ITEMS = """
WITH old AS MATERIALIZED (
    SELECT id FROM sprat.work_pool
    WHERE pool_name = $1 AND status IN ('done', 'poisoned', 'cancelled')
    ORDER BY seq LIMIT $2 FOR UPDATE SKIP LOCKED)
DELETE FROM sprat.work_pool WHERE id IN (SELECT id FROM old) RETURNING grp, status
"""
HAS_ITEMS = "SELECT 1 FROM sprat.work_pool WHERE pool_name = $1 LIMIT 1"
FORGET_POOL = (
    "DELETE FROM sprat.worker_registry WHERE pool_id = $1",
    "DELETE FROM sprat.scale_set WHERE pool_name = $1",
    "DELETE FROM sprat.decision WHERE pool_name = $1",
    "DELETE FROM sprat.tenant_turn WHERE pool_name = $1",
    "DELETE FROM sprat.pool_stats WHERE pool_name = $1",
    "DELETE FROM sprat.pool_count WHERE pool_name = $1",
    "DELETE FROM sprat.pool WHERE name = $1",
)


def delete_pool(connections: Sessions, pool: str, limit: int) -> bool | None:
    connections.write_notes()  # or statistics of the pool come after its end
    answer = connections.write(_forget_items, pool, limit)
    return answer if answer is not True else connections.write(_forget_pool, pool)


def _forget_items(tx: PostgresTransaction, pool: str, limit: int) -> bool | None:
    if _is_used(tx, pool):
        return None
    rows = tx.run(FORGET_ITEMS, (pool, limit)).fetchall()
    for group, status in rows:
        tx.tally.count(pool, group, counters.COLUMN[status], -1)
    return tx.one(HAS_ITEMS, (pool,)) is None


def _forget_pool(tx: PostgresTransaction, pool: str) -> bool | None:
    tx.run(BE_BRIEF)
    tx.run(LOCK)
    if _is_used(tx, pool):
        return None
    if tx.one(HAS_ITEMS, (pool,)) is not None:
        return False
    for statement in FORGET_POOL:
        tx.run(statement, (pool,))
    return True


def _is_used(tx: PostgresTransaction, pool: str) -> bool:
    counts = items.counts(tx, pool)
    unfinished = counts.pending + counts.claimed + counts.backlog
    return bool(unfinished or tx.one(HAS_WORKERS, (pool,)))
