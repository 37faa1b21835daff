"""SQL of store/sql/pools.py."""

from sprat.store.sqlite.rows import LIVE, SUSPENDED

NAMES = "SELECT name FROM pool ORDER BY name"
STATE = "SELECT settings, version, paused_until, pause_reason FROM pool WHERE name = ?"
ADD = "INSERT INTO pool (name) VALUES (?)"
LOCK = "SELECT settings, version FROM pool WHERE name = ?"
CONFIGURE = "UPDATE pool SET settings = ?2, version = version + 1 WHERE name = ?1"
PAUSE = """
INSERT INTO pool (name, paused_until, pause_reason) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET paused_until = ?2, pause_reason = ?3
"""
HOLD_OFF = PAUSE + "WHERE coalesce(paused_until < ?2, TRUE)"
LOCK_CHECK = "SELECT check_asked_at, awaited_at FROM pool WHERE name = ?"
AWAIT = "UPDATE pool SET awaited_at = ?2 WHERE name = ?1"
NEXT_DUE = """
SELECT min(run_at) FROM work_pool
WHERE pool_name = ? AND status = 'pending' AND run_at IS NOT NULL
"""
ASK = "UPDATE pool SET check_asked_at = ?2 WHERE name = ?1"
FLEET = f"""
SELECT coalesce(sum(status = 'starting'), 0), coalesce(sum(status = 'active'), 0),
       coalesce(sum(status = 'active' AND NOT {SUSPENDED} AND NOT EXISTS (
           SELECT 1 FROM work_pool WHERE claimed_by = worker_id AND {LIVE})), 0)
FROM worker_registry
WHERE pool_id = ?1 AND status IN ('starting', 'active', 'terminating') AND lease_until > ?2
"""
FORGET_WORKERS = """
DELETE FROM worker_registry WHERE ended_at < ?2 AND (pool_id = ?1 OR pool_id IS NULL)
"""
FORGET_DECISIONS = "DELETE FROM decision WHERE pool_name = ? AND at < ?"
FORGET_TURNS = """
DELETE FROM tenant_turn
WHERE pool_name = ?1 AND turn < (SELECT turn FROM pool WHERE name = ?1) - ?2
"""
