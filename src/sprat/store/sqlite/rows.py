"""Columns and conditions that several statements share: see store/sql/rows.py."""

# In the order of the fields of WorkItem. A finished item keeps its last token, unseen.
ITEM_COLUMNS = """id, pool_name, data, status, attempts, max_retries, priority, tenant, grp, key,
claimed_by, epoch, iif(status = 'claimed', token, NULL), checkpoint, progress, progress_note,
result, error, created_at, run_at, claimed_at, finished_at, given_back, task, transients, hold"""

# What the index work_pool_live holds: a statement that is to use it has to say so in these words.
LIVE = "run_at IS NULL AND status IN ('pending', 'claimed')"
READY = f"claimed_by IS NULL AND {LIVE}"  # of those, what waits; the others are claimed
ENDED = "status IN ('poisoned', 'cancelled')"  # what the index work_pool_ended holds

# Of a worker. A text that only looks like it has a pass asked for that finds nothing to do.
SUSPENDED = """(instr(metadata, '"suspended":true') > 0)"""

# claims: the running item first, then those claimed ahead
WORKER_COLUMNS = f"""worker_id, status, pool_id, host, pid, capabilities, started_at,
last_heartbeat, lease_seconds, lease_until, incarnation, metadata, reason, renewals,
(SELECT count(*) FROM work_pool WHERE claimed_by = worker_id AND {LIVE}),
(SELECT id FROM work_pool WHERE claimed_by = worker_id AND {LIVE}
 ORDER BY ahead, claimed_at, seq LIMIT 1)"""
