"""SQL of store/sql/pool_deletion.py."""

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
# While this lock is waited for, all other transactions wait too: it is given up, and tried again.
LOCK = (
    "SELECT set_config('lock_timeout', '500ms', true)",
    "LOCK TABLE sprat.pool IN ACCESS EXCLUSIVE MODE",
)
FORGET_POOL = (
    "DELETE FROM sprat.worker_registry WHERE pool_id = $1",
    "DELETE FROM sprat.scale_set WHERE pool_name = $1",
    "DELETE FROM sprat.decision WHERE pool_name = $1",
    "DELETE FROM sprat.tenant_turn WHERE pool_name = $1",
    "DELETE FROM sprat.pool_stats WHERE pool_name = $1",
    "DELETE FROM sprat.pool_count WHERE pool_name = $1",
    "DELETE FROM sprat.pool WHERE name = $1",
)
