"""Items outside of a claim: push, look, cancel, requeue, count, purge."""

from __future__ import annotations

from sprat.core import counters, model
from sprat.core.errors import KeyConflict, UnknownItem
from sprat.store.postgres.arrays import texts
from sprat.store.postgres.rows import ITEM_COLUMNS, item_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.store.postgres.connections import Sessions
    from sprat.store.postgres.transaction import PostgresTransaction

ITEM_FIELDS = 26
WALK_ROWS = 10_000  # looked at by one purge

PUSH = """
SELECT ids, others, tasks
FROM sprat.push_v2($1, $2::text[], $3::text[], $4::int[], $5::int[], $6::float8[], $7::text[],
                   $8::text[], $9::text[], $10::bool[], $11::text[])
"""
PUSH_ONE = "SELECT sprat.push_one_v2($1, $2, $3, $4::int, $5::int, $6)"
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
        WHERE pool_name = $1 AND status = 'pending' AND run_at <= sprat.clock()
          AND ($2::text IS NULL OR grp = $2))
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


def push(connections: Sessions, pool: str, items: Sequence[model.NewItem]) -> list[str]:
    if len(items) == 1 and not any(items[0][4:9]):
        connections.call(PUSH_ONE, (pool, *items[0][:4], items[0].task))
        return [items[0].id]
    values = (pool, *_columns(items))
    if values[8] is not None:  # with keys: payloads may have to be compared before the commit
        return connections.write(_push, values, items)
    connections.call(PUSH, values)
    return [item.id for item in items]


def push_joined(
    connections: Sessions, pool: str, items: Sequence[model.NewItem], connection: object
) -> list[str]:
    return connections.join(connection, _push, (pool, *_columns(items)), items)


def _push(
    tx: PostgresTransaction, values: tuple[Any, ...], items: Sequence[model.NewItem]
) -> list[str]:
    ids, others, tasks = tx.run(PUSH, values).fetchall()[0]
    if ids is None:
        return [item.id for item in items]
    for item, known, other, task in zip(items, ids, others, tasks, strict=True):
        if known != item.id:
            _check_same_job(known, other, task, item)
    return list(ids)


def _columns(items: Sequence[model.NewItem]) -> list[Any]:
    """The items column by column. Where all have the same value, it is sent once."""
    columns = (list(column) for column in zip(*items, strict=True))
    ids, data, retries, priority, delay, tenant, group, key, backlog, task = columns
    return [
        *(texts(ids), texts(data), _short(retries), _short(priority), _short(delay)),
        *(_labels(tenant), _labels(group), texts(key) if any(key) else None, _short(backlog)),
        _labels(task),
    ]


def _short(column: list[Any]) -> list[Any]:
    return column[:1] if column.count(column[0]) == len(column) else column


def _labels(column: list[str | None]) -> str | None:
    return texts(_short([value or "" for value in column])) if any(column) else None


def _check_same_job(known: str, stored: str, task: str | None, item: model.NewItem) -> None:
    import json

    if task != item.task:
        raise KeyConflict(f"the key {item.key!r} already names item {known} with another task")

    before, sent = (json.dumps(json.loads(text), sort_keys=True) for text in (stored, item.data))
    if before != sent:
        raise KeyConflict(f"the key {item.key!r} already names item {known} with another payload")


def get(connections: Sessions, item_id: str) -> model.WorkItem:
    rows = connections.call(GET, (item_id,)) if is_text(item_id) else []
    if not rows:
        raise UnknownItem(f"the store has no item {item_id!r}")
    return item_of(rows[0])


def pools_of(connections: Sessions, item_ids: Sequence[str]) -> list[str | None]:
    rows = connections.call(POOLS_OF, (list(filter(is_text, item_ids)),))
    found: dict[str, str] = dict(rows)
    return [found.get(item_id) for item_id in item_ids]


def is_text(item_id: str) -> bool:
    """Whether PostgreSQL could hold it at all."""
    return "\0" not in item_id


def page(
    connections: Sessions, pool: str, status: str | None, limit: int, after: str | None
) -> list[model.WorkItem]:
    seq = 0 if after is None else _seq(connections, after)
    statement = LIST if status is None else LIST_STATUS[status]
    rows = connections.call(statement, (pool, seq, limit))
    return [item_of(row[:ITEM_FIELDS]) for row in rows]


def _seq(connections: Sessions, item_id: str) -> int:
    rows = connections.call(SEQ_OF, (item_id,)) if is_text(item_id) else []
    if not rows:
        raise UnknownItem(f"the store has no item {item_id!r}")
    return int(rows[0][0])


def counts(tx: PostgresTransaction, pool: str, group: str | None = None) -> model.Counts:
    *row, due = tx.run(COUNTS, (pool, group)).fetchall()[0]
    numbers = dict(zip(counters.COUNTED, row, strict=True))
    numbers["delayed"] -= due
    return model.Counts(**numbers)


def cancel(tx: PostgresTransaction, pool: str, item_ids: Sequence[str]) -> int:
    cancellable = (model.PENDING, model.BACKLOG, model.CLAIMED)
    return _move(tx, pool, item_ids, cancellable, CANCEL, counters.CANCELLED)


def requeue(tx: PostgresTransaction, pool: str, item_ids: Sequence[str]) -> int:
    startable = (model.POISONED, model.CANCELLED, model.BACKLOG)
    return _move(tx, pool, item_ids, startable, REQUEUE, counters.PENDING)


def _move(
    tx: PostgresTransaction,
    pool: str,
    item_ids: Sequence[str],
    movable: tuple[str, ...],
    statement: str,
    to: int,
) -> int:
    found = {row[0]: row for row in tx.run(LOCK, (list(filter(is_text, item_ids)),)).fetchall()}
    changes = []
    for item_id in dict.fromkeys(item_ids):
        if item_id not in found:
            raise UnknownItem(f"the store has no item {item_id!r}")
        _, owner, group, status, run_at, claimed_by = found[item_id]
        if owner != pool or status not in movable:
            continue
        changes.append((item_id, tx.now))
        if status == model.CLAIMED:
            tx.taken_from.add(claimed_by)
        tx.tally.moved(pool, group, counters.COLUMN[status], to)
        if run_at is not None:
            tx.tally.count(pool, group, counters.DELAYED, -1)
    tx.run_many(statement, changes)
    if changes:
        tx.rings.add(pool)
    return len(changes)


def forget(tx: PostgresTransaction, pool: str, status: str, before: float, limit: int) -> int:
    """Delete up to `limit` items that ended in this status before this moment."""
    if status == model.DONE:
        rows = tx.run(FORGET_DONE, (_walk(tx, pool, before, limit),)).fetchall()
    else:
        rows = tx.run(FORGET_ENDED, (pool, status, before, limit)).fetchall()
    for (group,) in rows:
        tx.tally.count(pool, group, counters.COLUMN[status], -1)
    return len(rows)


def _walk(tx: PostgresTransaction, pool: str, before: float, limit: int) -> list[str]:
    """Old done items, looking at a stretch of the table from where the last purge stopped; at
    its end the next purge begins anew."""
    start = tx.one(PURGED_TO, (pool,)) or 0
    stretch = max(WALK_ROWS, limit)
    rows = tx.run(WALK, (pool, before, start, stretch)).fetchall()
    expired = [(seq, item_id) for seq, item_id, is_expired in rows if is_expired]
    if len(expired) > limit:
        stop = expired[limit - 1][0] if limit else start
    else:
        stop = rows[-1][0] if len(rows) == stretch else 0
    tx.run(SET_PURGED_TO, (pool, stop))
    return [item_id for _, item_id in expired[:limit]]
