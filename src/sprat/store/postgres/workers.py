"""SQL of store/sql/workers.py."""

from sprat.store.postgres.rows import WORKER_COLUMNS

GET = f"SELECT {WORKER_COLUMNS} FROM sprat.worker_registry WHERE worker_id = $1"
LIST = f"""
SELECT {WORKER_COLUMNS} FROM sprat.worker_registry
WHERE ($1::text[] IS NULL OR status = ANY ($1))
  AND ($2::text IS NULL OR pool_id = $2)
  AND ($3::float8 IS NULL OR last_heartbeat < $3)
  AND ($4::text IS NULL OR $4 = ANY (capabilities))
ORDER BY started_at, worker_id
"""
STATE = """
SELECT status, incarnation, metadata, pool_id, grp, capabilities
FROM sprat.worker_registry WHERE worker_id = $1 FOR NO KEY UPDATE
"""
REGISTER = """
INSERT INTO sprat.worker_registry AS w (worker_id, status, host, pid, capabilities, pool_id,
    started_at, last_heartbeat, incarnation, lease_seconds, lease_until, metadata)
VALUES ($1, 'active', $2, $3, $4::text[], $5, $6, $6, 1, $7, $6::float8 + $7, $8)
ON CONFLICT (worker_id) DO UPDATE SET status = 'active', host = $2, pid = $3,
    capabilities = $4::text[], pool_id = coalesce($5, w.pool_id), started_at = $6,
    last_heartbeat = $6, incarnation = w.incarnation + 1, lease_seconds = $7,
    lease_until = $6::float8 + $7, metadata = $8, reason = NULL, ended_at = NULL,
    renewals = 0
"""
BEAT = """
UPDATE sprat.worker_registry SET last_heartbeat = $2, lease_until = $2::float8 + lease_seconds,
       metadata = coalesce($3, metadata), renewals = 0
WHERE worker_id = $1
"""
KEEP_ALIVE = """
WITH moment AS MATERIALIZED (
    SELECT coalesce($2::float8, sprat.clock()) AS now), live AS (
    SELECT worker_id FROM sprat.worker_registry
    WHERE worker_id = ANY ($1::text[]) AND status IN ('starting', 'active', 'terminating')
    ORDER BY worker_id FOR NO KEY UPDATE)
UPDATE sprat.worker_registry w SET last_heartbeat = now, lease_until = now + w.lease_seconds,
       renewals = 0
FROM moment, live WHERE w.worker_id = live.worker_id
"""
HELD = "SELECT id, token FROM sprat.work_pool WHERE id = ANY ($1::text[]) AND status = 'claimed'"
MOVE = """
UPDATE sprat.worker_registry SET status = $2, reason = coalesce($3, reason),
       ended_at = $4::float8
WHERE worker_id = $1
"""
STALE = """
SELECT worker_id, status, pool_id, grp, started_at FROM sprat.worker_registry
WHERE status IN ('starting', 'active', 'terminating') AND ($1::text IS NULL OR pool_id = $1)
  AND CASE WHEN $2::float8 IS NULL OR status = 'starting' THEN lease_until <= $3
      ELSE last_heartbeat < $3::float8 - $2 END
ORDER BY worker_id FOR NO KEY UPDATE
"""
# Launches that expire in one step have one cause, and count once.
ADD_LAUNCH_FAILURE = """
UPDATE sprat.scale_set SET launch_failures = launch_failures + 1, last_launch_failure_at = $3
WHERE pool_name = $1 AND grp = $2 AND last_launch_failure_at IS DISTINCT FROM $3
"""
RESET_LAUNCH_FAILURES = """
UPDATE sprat.scale_set SET launch_failures = 0
WHERE pool_name = $1 AND grp = $2 AND launch_failures > 0
"""
