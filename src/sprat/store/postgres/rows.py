"""Columns and conditions that several statements share: see store/sql/rows.py."""

# In the order of the fields of WorkItem. A finished item keeps its last token, unseen.
ITEM_COLUMNS = """id, pool_name, data, status, attempts, max_retries, priority, tenant, grp, key,
claimed_by, epoch, CASE status WHEN 'claimed' THEN token END, checkpoint, progress, progress_note,
result, error, created_at, run_at, claimed_at, finished_at, given_back,
task, transients, hold"""

# Of a worker. A text that only looks like it has a pass asked for that finds nothing to do.
SUSPENDED = """(position('"suspended":true' IN metadata) > 0)"""

# claims: the running item first, then those claimed ahead
WORKER_COLUMNS = """worker_id, status, pool_id, host, pid, capabilities, started_at,
last_heartbeat, lease_seconds, lease_until, incarnation, metadata, reason, renewals,
(SELECT count(*) FROM sprat.work_pool i WHERE i.claimed_by = worker_id AND i.status = 'claimed'),
(SELECT i.id FROM sprat.work_pool i WHERE i.claimed_by = worker_id AND i.status = 'claimed'
 ORDER BY i.ahead, i.claimed_at, i.seq LIMIT 1)"""
