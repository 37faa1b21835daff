"""SQL of store/sql/items.py."""

from sprat.core import model
from sprat.store.sqlite.rows import ENDED, ITEM_COLUMNS, LIVE, READY

GET = f"SELECT {ITEM_COLUMNS} FROM work_pool WHERE id = ?"
POOLS_OF = "SELECT id, pool_name FROM work_pool WHERE id = ?"
SEQ_OF = "SELECT seq FROM work_pool WHERE id = ?"
LIST = f"""
SELECT {ITEM_COLUMNS} FROM work_pool
WHERE pool_name = ? AND seq > ? ORDER BY seq LIMIT ?
"""
# One statement a status, each naming its partial index's condition: a page of pending items never
# walks through a million finished ones.
LIST_STATUS = {
    status: f"""
SELECT {ITEM_COLUMNS} FROM work_pool WHERE seq IN (
    SELECT seq FROM work_pool WHERE pool_name = ?1 AND {condition} AND +seq > ?2
    ORDER BY +seq LIMIT ?3)
ORDER BY seq
"""
    for status, condition in (
        (model.CLAIMED, f"claimed_by IS NOT NULL AND {LIVE}"),
        (model.BACKLOG, "status = 'backlog'"),
        (model.POISONED, f"status = 'poisoned' AND {ENDED}"),
        (model.CANCELLED, f"status = 'cancelled' AND {ENDED}"),
    )
}
LIST_STATUS[model.DONE] = f"""
SELECT {ITEM_COLUMNS} FROM work_pool
WHERE pool_name = ?1 AND status = 'done' AND seq > ?2 ORDER BY seq LIMIT ?3
"""
LIST_STATUS[model.PENDING] = f"""
SELECT {ITEM_COLUMNS} FROM work_pool WHERE seq IN (
    SELECT seq FROM (
        SELECT seq FROM work_pool
        WHERE pool_name = ?1 AND {READY} AND +seq > ?2
        UNION ALL
        SELECT seq FROM work_pool
        WHERE pool_name = ?1 AND status = 'pending' AND run_at IS NOT NULL AND +seq > ?2)
    ORDER BY seq LIMIT ?3)
ORDER BY seq
"""
COUNTS = """
SELECT coalesce(sum(pending), 0), coalesce(sum(delayed), 0), coalesce(sum(backlog), 0),
       coalesce(sum(claimed), 0), coalesce(sum(done), 0), coalesce(sum(poisoned), 0),
       coalesce(sum(cancelled), 0),
       (SELECT count(*) FROM work_pool
        WHERE pool_name = ?1 AND status = 'pending' AND run_at <= ?3 AND (?2 IS NULL OR grp = ?2))
FROM pool_count WHERE pool_name = ?1 AND (?2 IS NULL OR grp = ?2)
"""
LOCK = "SELECT id, pool_name, grp, status, run_at, claimed_by FROM work_pool WHERE id = ?"
CANCEL = """
UPDATE work_pool SET status = 'cancelled', finished_at = ?2, run_at = NULL, token = NULL,
       claimed_by = NULL, ahead = 0, hold = NULL
WHERE id = ?1
"""
REQUEUE = """
UPDATE work_pool SET status = 'pending', finished_at = NULL, run_at = NULL, ready_at = ?2,
       attempts = 0, suspect = 0, given_back = 0, transients = 0, claimed_by = NULL,
       claimed_at = NULL, result = NULL, checkpoint = NULL, progress = NULL, progress_note = NULL
WHERE id = ?1
"""
# The index work_pool_parked holds these and no others.
PARKED_FOR = """
SELECT id, grp, run_at FROM work_pool
WHERE pool_name = ?1 AND hold IS NOT NULL AND task IN (SELECT value FROM json_each(?2))
"""
UNPARK = """
UPDATE work_pool SET hold = NULL, run_at = NULL, ready_at = min(ready_at, ?2)
WHERE id IN (SELECT value FROM json_each(?1))
"""
PARKED = """
SELECT coalesce(task, ''), count(*) FROM work_pool
WHERE pool_name = ?1 AND hold IS NOT NULL AND (?2 IS NULL OR grp = ?2) GROUP BY task
"""
FORGET_ENDED = """
DELETE FROM work_pool WHERE seq IN (
    SELECT seq FROM work_pool
    WHERE pool_name = ?1 AND status = ?2 AND status IN ('poisoned', 'cancelled')
      AND finished_at < ?3
    ORDER BY finished_at LIMIT ?4)
RETURNING grp
"""
WALK = """
SELECT seq, id, pool_name = ?1 AND status = 'done' AND finished_at < ?2
FROM work_pool WHERE seq > ?3 ORDER BY seq LIMIT ?4
"""
FORGET_DONE = "DELETE FROM work_pool WHERE id = ? AND status = 'done' RETURNING grp"
PURGED_TO = "SELECT purged_to FROM pool WHERE name = ?"
SET_PURGED_TO = "UPDATE pool SET purged_to = ?2 WHERE name = ?1"
