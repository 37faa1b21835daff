"""SQL of store/sql/settling.py and store/sql/releasing.py."""

HELD = """
SELECT seq, pool_name, grp, claimed_at, tenant, attempts, max_retries, ahead, suspect, given_back,
       transients
FROM sprat.work_pool WHERE id = $1 AND token = $2 AND status = 'claimed' FOR NO KEY UPDATE
"""
COMPLETE_HELD = """
UPDATE sprat.work_pool SET status = 'done', result = $2, error = NULL, finished_at = $3,
       attempts = attempts + (ahead > 0)::int, ahead = 0, suspect = false
WHERE seq = $1 AND pool_name = $4
"""
PUT_BACK = """
UPDATE sprat.work_pool SET status = $3, attempts = $4, suspect = $5, given_back = $6,
       error = coalesce($7, error), ready_at = $8, run_at = $9, finished_at = $10,
       transients = $13, hold = $14,
       claimed_by = CASE WHEN $10::float8 IS NOT NULL THEN claimed_by END, ahead = 0,
       last_token = coalesce($11, last_token), last_outcome = coalesce($12, last_outcome),
       token = NULL
WHERE pool_name = $1 AND seq = $2
"""
LAST_SETTLED = """
SELECT CASE status WHEN 'done' THEN token ELSE last_token END,
       CASE status WHEN 'done' THEN 'complete' ELSE last_outcome END, result
FROM sprat.work_pool WHERE id = $1
"""
SAVE = """
UPDATE sprat.work_pool SET checkpoint = coalesce($3, checkpoint),
       progress = coalesce($4::float8, progress), progress_note = coalesce($5, progress_note)
WHERE id = $1 AND token = $2 AND status = 'claimed'
"""
# -- of a worker that is dead or leaves
HELD_BY = """
SELECT seq, id, pool_name, grp, attempts, max_retries, ahead, suspect, given_back, transients
FROM sprat.work_pool
WHERE claimed_by = $1 AND status = 'claimed' AND ($2::text IS NULL OR pool_name = $2)
ORDER BY id FOR NO KEY UPDATE
"""
RENEWALS = "SELECT renewals FROM sprat.worker_registry WHERE worker_id = $1"
SETTINGS = "SELECT settings FROM sprat.pool WHERE name = $1"
