"""SQL of store/sql/pools.py."""

from sprat.store.postgres.rows import SUSPENDED

NAMES = "SELECT name FROM sprat.pool ORDER BY name"
STATE = "SELECT settings, version, paused_until, pause_reason FROM sprat.pool WHERE name = $1"
ADD = "INSERT INTO sprat.pool (name) VALUES ($1) ON CONFLICT DO NOTHING"
LOCK = "SELECT settings, version FROM sprat.pool WHERE name = $1 FOR NO KEY UPDATE"
CONFIGURE = "UPDATE sprat.pool SET settings = $2, version = version + 1 WHERE name = $1"
PAUSE = """
INSERT INTO sprat.pool (name, paused_until, pause_reason) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE
SET paused_until = excluded.paused_until, pause_reason = excluded.pause_reason
"""
HOLD_OFF = """
INSERT INTO sprat.pool AS p (name, paused_until, pause_reason) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE
SET paused_until = excluded.paused_until, pause_reason = excluded.pause_reason
WHERE excluded.paused_until > coalesce(p.paused_until, 0)
"""
WAS_ASKED = """
SELECT check_asked_at IS NOT NULL AND sprat.clock() - check_asked_at < $2
FROM sprat.pool WHERE name = $1
"""
LOCK_CHECK = """
SELECT check_asked_at, awaited_at FROM sprat.pool WHERE name = $1 FOR NO KEY UPDATE
"""
AWAIT = "UPDATE sprat.pool SET awaited_at = $2 WHERE name = $1"
NEXT_DUE = """
SELECT min(run_at) FROM sprat.work_pool
WHERE pool_name = $1 AND status = 'pending' AND run_at IS NOT NULL
"""
ASK = "UPDATE sprat.pool SET check_asked_at = $2 WHERE name = $1"
FLEET = f"""
SELECT count(*) FILTER (WHERE status = 'starting'), count(*) FILTER (WHERE status = 'active'),
       count(*) FILTER (WHERE status = 'active' AND NOT {SUSPENDED} AND NOT EXISTS (
           SELECT 1 FROM sprat.work_pool i
           WHERE i.claimed_by = worker_id AND i.status = 'claimed'))
FROM sprat.worker_registry
WHERE pool_id = $1 AND status IN ('starting', 'active', 'terminating') AND lease_until > $2
"""
FORGET_WORKERS = """
DELETE FROM sprat.worker_registry WHERE ended_at < $2 AND (pool_id = $1 OR pool_id IS NULL)
"""
FORGET_DECISIONS = "DELETE FROM sprat.decision WHERE pool_name = $1 AND at < $2"
FORGET_TURNS = """
DELETE FROM sprat.tenant_turn
WHERE pool_name = $1 AND turn < (SELECT turn FROM sprat.pool WHERE name = $1) - $2::bigint
"""
