"""SQL of store/sql/workers.py."""

from sprat.store.sqlite.rows import WORKER_COLUMNS

GET = f"SELECT {WORKER_COLUMNS} FROM worker_registry WHERE worker_id = ?"
LIST = f"""
SELECT {WORKER_COLUMNS} FROM worker_registry
WHERE (?1 IS NULL OR status IN (SELECT value FROM json_each(?1)))
  AND (?2 IS NULL OR pool_id = ?2)
  AND (?3 IS NULL OR last_heartbeat < ?3)
  AND (?4 IS NULL OR EXISTS (SELECT 1 FROM json_each(capabilities) WHERE value = ?4))
ORDER BY started_at, worker_id
"""
STATE = """
SELECT status, incarnation, metadata, pool_id, grp, capabilities
FROM worker_registry WHERE worker_id = ?
"""
REGISTER = """
INSERT INTO worker_registry (worker_id, status, host, pid, capabilities, pool_id, started_at,
    last_heartbeat, incarnation, knows_tasks, lease_seconds, lease_until, metadata)
VALUES (?1, 'active', ?2, ?3, ?4, ?5, ?6, ?6, 1, 1, ?7, ?6 + ?7, ?8)
ON CONFLICT DO UPDATE SET status = 'active', host = ?2, pid = ?3,
    capabilities = ?4, pool_id = coalesce(?5, pool_id), started_at = ?6, last_heartbeat = ?6,
    incarnation = incarnation + 1, knows_tasks = incarnation + 1, lease_seconds = ?7,
    lease_until = ?6 + ?7, metadata = ?8,
    reason = NULL, ended_at = NULL, renewals = 0
"""
BEAT = """
UPDATE worker_registry SET last_heartbeat = ?2, lease_until = ?2 + lease_seconds,
       metadata = coalesce(?3, metadata), renewals = 0
WHERE worker_id = ?1
"""
HELD = "SELECT id, token FROM work_pool WHERE id = ? AND status = 'claimed'"
KEEP_ALIVE = """
UPDATE worker_registry SET last_heartbeat = ?2, lease_until = ?2 + lease_seconds, renewals = 0
WHERE worker_id IN (SELECT value FROM json_each(?1))
  AND status IN ('starting', 'active', 'terminating')
"""
MOVE = """
UPDATE worker_registry SET status = ?2, reason = coalesce(?3, reason), ended_at = ?4
WHERE worker_id = ?1
"""
STALE = """
SELECT worker_id, status, pool_id, grp, started_at FROM worker_registry
WHERE status IN ('starting', 'active', 'terminating') AND (?1 IS NULL OR pool_id = ?1)
  AND iif(?2 IS NULL OR status = 'starting', lease_until <= ?3, last_heartbeat < ?3 - ?2)
"""
# Launches that expire in one step have one cause, and count once.
ADD_LAUNCH_FAILURE = """
UPDATE scale_set SET launch_failures = launch_failures + 1, last_launch_failure_at = ?3
WHERE pool_name = ?1 AND grp = ?2 AND last_launch_failure_at IS NOT ?3
"""
RESET_LAUNCH_FAILURES = """
UPDATE scale_set SET launch_failures = 0
WHERE pool_name = ?1 AND grp = ?2 AND launch_failures > 0
"""
