"""SQL of store/sql/pool_deletion.py."""

HAS_WORKERS = """
SELECT 1 FROM worker_registry
WHERE pool_id = ? AND status IN ('starting', 'active', 'terminating') LIMIT 1
"""
FORGET_ITEMS = """
DELETE FROM work_pool WHERE seq IN (SELECT seq FROM work_pool WHERE pool_name = ? LIMIT ?)
RETURNING grp, status
"""
HAS_ITEMS = "SELECT 1 FROM work_pool WHERE pool_name = ? LIMIT 1"
LOCK = ()  # one transaction writes at a time
FORGET_POOL = (
    "DELETE FROM worker_registry WHERE pool_id = ?",
    "DELETE FROM scale_set WHERE pool_name = ?",
    "DELETE FROM decision WHERE pool_name = ?",
    "DELETE FROM tenant_turn WHERE pool_name = ?",
    "DELETE FROM pool_stats WHERE pool_name = ?",
    "DELETE FROM pool_count WHERE pool_name = ?",
    "DELETE FROM pool WHERE name = ?",
)
