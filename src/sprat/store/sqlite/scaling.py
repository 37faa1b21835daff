"""SQL of store/sql/scaling.py."""

from sprat.store.sqlite import lanes
from sprat.store.sqlite.rows import READY, WORKER_COLUMNS

SCALE_SET = """
SELECT version, last_up_at, last_down_at, launch_failures, last_launch_failure_at
FROM scale_set WHERE pool_name = ? AND grp = ?
"""
POOL = "SELECT has_tenants, settings, paused_until, pause_reason FROM pool WHERE name = ?"
RUNNING = lanes.RUNNING
READY_BY_TENANT = f"""
SELECT tenant, count(*) FROM work_pool
WHERE pool_name = ?1 AND {READY} AND tenant <> '' AND (?2 IS NULL OR grp = ?2) GROUP BY tenant
"""
LIVE = f"""
SELECT {WORKER_COLUMNS} FROM worker_registry
WHERE pool_id = ?1 AND status IN ('starting', 'active', 'terminating') AND lease_until > ?2
  AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(capabilities) WHERE value = ?3))
ORDER BY started_at, worker_id
"""
COUNT_LIVE = """
SELECT count(*) FROM worker_registry
WHERE pool_id = ?1 AND status IN ('starting', 'active', 'terminating') AND lease_until > ?2
  AND status <> 'terminating'
  AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(capabilities) WHERE value = ?3))
"""
# The ready item that was pushed first: the least of those that are first in a lane's priority.
OLDEST = f"""
WITH RECURSIVE lane (priority, tenant, grp, seq) AS (
    SELECT * FROM (
        SELECT priority, tenant, grp, seq FROM work_pool
        WHERE pool_name = ?1 AND {READY}
        ORDER BY tenant, grp, priority DESC, seq LIMIT 1)
    UNION ALL
    SELECT w.priority, w.tenant, w.grp, w.seq FROM lane JOIN work_pool w ON w.seq = coalesce(
        (SELECT seq FROM work_pool
         WHERE pool_name = ?1 AND {READY}
           AND tenant = lane.tenant AND grp = lane.grp AND priority < lane.priority
         ORDER BY priority DESC, seq LIMIT 1),
        (SELECT seq FROM work_pool
         WHERE pool_name = ?1 AND {READY} AND tenant = lane.tenant AND grp > lane.grp
         ORDER BY grp, priority DESC, seq LIMIT 1),
        (SELECT seq FROM work_pool
         WHERE pool_name = ?1 AND {READY} AND tenant > lane.tenant
         ORDER BY tenant, grp, priority DESC, seq LIMIT 1)))
SELECT ready_at FROM work_pool
WHERE seq = (SELECT min(seq) FROM lane WHERE ?2 IS NULL OR grp = ?2)
"""
OLDEST_DUE = """
SELECT min(run_at) FROM work_pool
WHERE pool_name = ?1 AND status = 'pending' AND run_at <= ?2 AND (?3 IS NULL OR grp = ?3)
"""
NEXT_DUE = """
SELECT min(run_at) FROM work_pool
WHERE pool_name = ?1 AND status = 'pending' AND run_at > ?3 AND (?2 IS NULL OR grp = ?2)
"""
RECORD = """
INSERT INTO scale_set (pool_name, grp, version, last_up_at, last_down_at)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET version = ?3, last_up_at = coalesce(?4, last_up_at),
    last_down_at = coalesce(?5, last_down_at)
"""
RESERVE = """
INSERT INTO worker_registry (worker_id, status, pool_id, grp, capabilities, started_at,
    last_heartbeat, lease_seconds, lease_until)
VALUES (?1, 'starting', ?2, ?3, ?4, ?5, ?5, ?6, ?5 + ?6)
"""
KEEP = "INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DECISION = """
SELECT version, at, pool_name, grp, policy, direction, current, desired, reason, inputs,
       launched, drained
FROM decision WHERE pool_name = ?1
"""
DECISIONS = f"{_DECISION} AND (?2 IS NULL OR grp = ?2) ORDER BY at DESC, version DESC LIMIT ?3"
DECISION = f"{_DECISION} AND grp = ?2 AND version = ?3"
