"""SQL of store/sql/settling.py and store/sql/releasing.py."""

from sprat.store.sqlite.rows import LIVE

HELD = """
SELECT seq, pool_name, grp, claimed_at, tenant, attempts, max_retries, ahead, suspect, given_back,
       transients
FROM work_pool WHERE id = ? AND token = ? AND status = 'claimed'
"""
COMPLETE = """
UPDATE work_pool SET status = 'done', result = ?2, error = NULL, finished_at = ?3,
       attempts = attempts + (ahead > 0), ahead = 0, suspect = 0
WHERE seq = ?1
"""
COMPLETE_HELD = COMPLETE + " AND pool_name = ?4"
PUT_BACK = """
UPDATE work_pool SET status = ?3, attempts = ?4, suspect = ?5, given_back = ?6,
       error = coalesce(?7, error), ready_at = ?8, run_at = ?9, finished_at = ?10,
       claimed_by = iif(?10 IS NULL, NULL, claimed_by), ahead = 0,
       last_token = coalesce(?11, last_token), last_outcome = coalesce(?12, last_outcome),
       token = NULL, transients = ?13, hold = ?14
WHERE seq = ?2 AND pool_name = ?1
"""
LAST_SETTLED = """
SELECT iif(status = 'done', token, last_token), iif(status = 'done', 'complete', last_outcome),
       result
FROM work_pool WHERE id = ?
"""
SAVE = """
UPDATE work_pool SET checkpoint = coalesce(?3, checkpoint), progress = coalesce(?4, progress),
       progress_note = coalesce(?5, progress_note)
WHERE id = ?1 AND token = ?2 AND status = 'claimed'
"""
# -- of a worker that is dead or leaves
HELD_BY = f"""
SELECT seq, id, pool_name, grp, attempts, max_retries, ahead, suspect, given_back,
       transients
FROM work_pool WHERE claimed_by = ?1 AND {LIVE} AND (?2 IS NULL OR pool_name = ?2)
ORDER BY seq
"""
RENEWALS = "SELECT renewals FROM worker_registry WHERE worker_id = ?"
SETTINGS = "SELECT settings FROM pool WHERE name = ?"
