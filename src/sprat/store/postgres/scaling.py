"""SQL of store/sql/scaling.py."""

from sprat.store.postgres.rows import WORKER_COLUMNS

SCALE_SET = """
SELECT version, last_up_at, last_down_at, launch_failures, last_launch_failure_at
FROM sprat.scale_set WHERE pool_name = $1 AND grp = $2
"""
POOL = """
SELECT has_tenants, settings, paused_until, pause_reason FROM sprat.pool WHERE name = $1
"""
READY_BY_TENANT = """
SELECT tenant, count(*) FROM sprat.work_pool
WHERE pool_name = $1 AND status = 'pending' AND run_at IS NULL AND tenant <> ''
  AND ($2::text IS NULL OR grp = $2) GROUP BY tenant
"""
RUNNING = """
SELECT tenant, count(*) FROM sprat.work_pool
WHERE pool_name = $1 AND status = 'claimed' AND tenant <> '' GROUP BY tenant
"""
LIVE = f"""
SELECT {WORKER_COLUMNS} FROM sprat.worker_registry
WHERE pool_id = $1 AND status IN ('starting', 'active', 'terminating') AND lease_until > $2
  AND ($3::text IS NULL OR $3 = ANY (capabilities))
ORDER BY started_at, worker_id
"""
COUNT_LIVE = """
SELECT count(*) FROM sprat.worker_registry
WHERE pool_id = $1 AND status IN ('starting', 'active') AND lease_until > $2
  AND ($3::text IS NULL OR $3 = ANY (capabilities))
"""
# The ready item that was pushed first: the least of those that are first in a lane's priority.
OLDEST = """
WITH RECURSIVE lane AS (
    (SELECT tenant, grp, priority, seq FROM sprat.work_pool
     WHERE pool_name = $1 AND status = 'pending' AND run_at IS NULL
     ORDER BY tenant, grp, priority DESC, seq LIMIT 1)
    UNION ALL
    SELECT next.tenant, next.grp, next.priority, next.seq FROM lane, LATERAL (
        (SELECT 1 AS rank, w.tenant, w.grp, w.priority, w.seq FROM sprat.work_pool w
         WHERE pool_name = $1 AND status = 'pending' AND run_at IS NULL
           AND w.tenant = lane.tenant AND w.grp = lane.grp AND w.priority < lane.priority
         ORDER BY w.priority DESC, w.seq LIMIT 1)
        UNION ALL
        (SELECT 2, w.tenant, w.grp, w.priority, w.seq FROM sprat.work_pool w
         WHERE pool_name = $1 AND status = 'pending' AND run_at IS NULL
           AND (w.tenant, w.grp) > (lane.tenant, lane.grp)
         ORDER BY w.tenant, w.grp, w.priority DESC, w.seq LIMIT 1)
        ORDER BY rank LIMIT 1) AS next)
SELECT ready_at FROM sprat.work_pool
WHERE pool_name = $1 AND seq = (
    SELECT min(seq) FROM lane WHERE $2::text IS NULL OR grp = $2)
"""
OLDEST_DUE = """
SELECT min(run_at) FROM sprat.work_pool
WHERE pool_name = $1 AND status = 'pending' AND run_at <= $2 AND ($3::text IS NULL OR grp = $3)
"""
NEXT_DUE = """
SELECT min(run_at) FROM sprat.work_pool
WHERE pool_name = $1 AND status = 'pending' AND run_at > $3 AND ($2::text IS NULL OR grp = $2)
"""
RECORD = """
INSERT INTO sprat.scale_set AS s (pool_name, grp, version, last_up_at, last_down_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (pool_name, grp) DO UPDATE SET version = excluded.version,
    last_up_at = coalesce(excluded.last_up_at, s.last_up_at),
    last_down_at = coalesce(excluded.last_down_at, s.last_down_at)
"""
RESERVE = """
INSERT INTO sprat.worker_registry (worker_id, status, pool_id, grp, capabilities, started_at,
    last_heartbeat, lease_seconds, lease_until)
VALUES ($1, 'starting', $2, $3, $4::text[], $5, $5, $6, $5::float8 + $6)
"""
KEEP = """
INSERT INTO sprat.decision
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text[], $12::text[])
"""
_DECISION = """
SELECT version, at, pool_name, grp, policy, direction, current, desired, reason, inputs,
       launched, drained
FROM sprat.decision
"""
DECISIONS = f"""{_DECISION}
WHERE pool_name = $1 AND ($2::text IS NULL OR grp = $2) ORDER BY at DESC, version DESC LIMIT $3
"""
DECISION = f"{_DECISION} WHERE pool_name = $1 AND grp = $2 AND version = $3"
