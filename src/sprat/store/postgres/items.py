"""SQL of store/sql/items.py."""

from sprat.core import model
from sprat.store.postgres.rows import ITEM_COLUMNS

GET = f"SELECT {ITEM_COLUMNS} FROM sprat.work_pool WHERE id = $1"
POOLS_OF = "SELECT id, pool_name FROM sprat.work_pool WHERE id = ANY ($1::text[])"
SEQ_OF = "SELECT seq FROM sprat.work_pool WHERE id = $1"
LIST = f"""
SELECT {ITEM_COLUMNS} FROM sprat.work_pool
WHERE pool_name = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""
# One statement a status, each naming its partial index's condition: a page of pending items never
# walks through a million finished ones. (`seq + 0` keeps the planner from walking in order.)
LIST_STATUS = {
    status: f"""
SELECT {ITEM_COLUMNS} FROM sprat.work_pool
WHERE pool_name = $1 AND {condition} AND seq + 0 > $2 ORDER BY seq + 0 LIMIT $3
"""
    for status, condition in (
        (model.CLAIMED, "status = 'claimed'"),
        (model.BACKLOG, "status = 'backlog'"),
        (model.POISONED, "status = 'poisoned'"),
        (model.CANCELLED, "status = 'cancelled'"),
    )
}
LIST_STATUS[model.PENDING] = f"""
SELECT * FROM (
    SELECT {ITEM_COLUMNS}, seq + 0 AS place FROM sprat.work_pool
    WHERE pool_name = $1 AND status = 'pending' AND run_at IS NULL AND seq + 0 > $2
    UNION ALL
    SELECT {ITEM_COLUMNS}, seq + 0 FROM sprat.work_pool
    WHERE pool_name = $1 AND status = 'pending' AND run_at IS NOT NULL AND seq + 0 > $2) AS found
ORDER BY place LIMIT $3
"""
LIST_STATUS[model.DONE] = f"""
SELECT {ITEM_COLUMNS} FROM sprat.work_pool
WHERE pool_name = $1 AND status = 'done' AND seq > $2 ORDER BY seq LIMIT $3
"""
COUNTS = """
SELECT coalesce(sum(pending), 0)::bigint, coalesce(sum(delayed), 0)::bigint,
       coalesce(sum(backlog), 0)::bigint, coalesce(sum(claimed), 0)::bigint,
       coalesce(sum(done), 0)::bigint, coalesce(sum(poisoned), 0)::bigint,
       coalesce(sum(cancelled), 0)::bigint,
       (SELECT count(*) FROM sprat.work_pool
        WHERE pool_name = $1 AND status = 'pending'
          AND run_at <= coalesce($3::float8, sprat.clock()) AND ($2::text IS NULL OR grp = $2))
FROM sprat.pool_count WHERE pool_name = $1 AND ($2::text IS NULL OR grp = $2)
"""
LOCK = """
SELECT id, pool_name, grp, status, run_at, claimed_by FROM sprat.work_pool
WHERE id = ANY ($1::text[]) ORDER BY id FOR NO KEY UPDATE
"""
CANCEL = """
UPDATE sprat.work_pool SET status = 'cancelled', finished_at = $2, run_at = NULL, token = NULL,
       claimed_by = NULL, ahead = 0, hold = NULL
WHERE id = $1
"""
REQUEUE = """
UPDATE sprat.work_pool SET status = 'pending', finished_at = NULL, run_at = NULL, ready_at = $2,
       attempts = 0, suspect = false, given_back = 0, transients = 0,
       claimed_by = NULL, claimed_at = NULL, hold = NULL, result = NULL, checkpoint = NULL,
       progress = NULL, progress_note = NULL
WHERE id = $1
"""
PARKED_FOR = """
SELECT id, grp, run_at FROM sprat.work_pool
WHERE pool_name = $1 AND hold IS NOT NULL AND task = ANY ($2::text[])
ORDER BY id FOR NO KEY UPDATE
"""
UNPARK = """
UPDATE sprat.work_pool SET hold = NULL, run_at = NULL, ready_at = least(ready_at, $2)
WHERE id = ANY ($1::text[])
"""
PARKED = """
SELECT coalesce(task, ''), count(*) FROM sprat.work_pool
WHERE pool_name = $1 AND hold IS NOT NULL AND ($2::text IS NULL OR grp = $2) GROUP BY task
"""
# Materialized: a plan that ran the inner query once for each row would delete beyond the limit.
FORGET_ENDED = """
WITH old AS MATERIALIZED (
    SELECT id FROM sprat.work_pool
    WHERE pool_name = $1 AND status = $2 AND status IN ('poisoned', 'cancelled', 'backlog')
      AND finished_at < $3
    ORDER BY finished_at LIMIT $4 FOR UPDATE SKIP LOCKED)
DELETE FROM sprat.work_pool WHERE id IN (SELECT id FROM old) RETURNING grp
"""
WALK = """
SELECT seq, id, status = 'done' AND finished_at < $2
FROM sprat.work_pool WHERE pool_name = $1 AND seq > $3 ORDER BY seq LIMIT $4
"""
FORGET_DONE = """
DELETE FROM sprat.work_pool WHERE id = ANY ($1::text[]) AND status = 'done' RETURNING grp
"""
PURGED_TO = "SELECT purged_to FROM sprat.pool WHERE name = $1"
SET_PURGED_TO = "UPDATE sprat.pool SET purged_to = $2 WHERE name = $1"
