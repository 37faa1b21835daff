"""Items outside of a claim: push, look, cancel, requeue, count, purge."""

from __future__ import annotations

from sprat.core import counters, model
from sprat.core.errors import KeyConflict, UnknownItem
from sprat.store.sqlite.rows import ENDED, ITEM_COLUMNS, LIVE, READY, item_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.sqlite.transaction import SqliteTransaction, WriteTransaction

WALK_ROWS = 10_000  # looked at by one purge

ADD_POOL = """
INSERT INTO pool (name, has_lanes, has_tenants) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET has_lanes = has_lanes | ?2, has_tenants = has_tenants | ?3
WHERE has_lanes < ?2 OR has_tenants < ?3
"""
_PUSH = """
INSERT INTO work_pool (pool_name, status, max_retries, priority, tenant, grp, key, created_at,
                       ready_at, run_at, task, id, data)
VALUES {rows} ON CONFLICT (id) DO NOTHING
"""
_ROW = "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?{}, ?{})"
PUSH = _PUSH.format(rows=_ROW.format(12, 13))
# Items that share all but id and payload, so many in one statement: to bind the values of a row
# each time takes longer than to insert it.
ALIKE = 50
PUSH_ALIKE = _PUSH.format(rows=", ".join(_ROW.format(12 + 2 * n, 13 + 2 * n) for n in range(ALIKE)))
FIND_KEY = "SELECT id, data, task FROM work_pool WHERE pool_name = ? AND key = ?"
GET = f"SELECT {ITEM_COLUMNS} FROM work_pool WHERE id = ?"
POOL_OF = "SELECT pool_name FROM work_pool WHERE id = ?"
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
SELECT sum(pending), sum(delayed), sum(backlog), sum(claimed), sum(done), sum(poisoned),
       sum(cancelled)
FROM pool_count WHERE pool_name = ?1 AND (?2 IS NULL OR grp = ?2)
"""
COUNT_DUE = """
SELECT count(*) FROM work_pool
WHERE pool_name = ?1 AND status = 'pending' AND run_at <= ?2 AND (?3 IS NULL OR grp = ?3)
"""
GET_STATE = "SELECT seq, pool_name, grp, status, run_at FROM work_pool WHERE id = ?"
CANCEL = """
UPDATE work_pool SET status = 'cancelled', finished_at = ?2, run_at = NULL, token = NULL,
       claimed_by = NULL, ahead = 0, hold = NULL
WHERE seq = ?1
"""
REQUEUE = """
UPDATE work_pool SET status = 'pending', finished_at = NULL, run_at = NULL, ready_at = ?2,
       attempts = 0, suspect = 0, given_back = 0, transients = 0, claimed_by = NULL,
       claimed_at = NULL, result = NULL, checkpoint = NULL, progress = NULL, progress_note = NULL
WHERE seq = ?1
"""
# The index work_pool_parked holds these and no others.
PARKED_FOR = """
SELECT grp, count(run_at) FROM work_pool
WHERE pool_name = ?1 AND task = ?2 AND hold IS NOT NULL GROUP BY grp
"""
UNPARK = """
UPDATE work_pool SET hold = NULL, ready_at = min(ready_at, ?3), run_at = NULL
WHERE pool_name = ?1 AND task = ?2 AND hold IS NOT NULL
"""
PARKED = """
SELECT coalesce(task, ''), count(*) FROM work_pool
WHERE pool_name = ?1 AND hold IS NOT NULL AND (?2 IS NULL OR grp = ?2) GROUP BY task
"""
EXPIRED = """
SELECT seq, grp FROM work_pool
WHERE pool_name = ?1 AND status = ?2 AND status IN ('poisoned', 'cancelled') AND finished_at < ?3
ORDER BY finished_at LIMIT ?4
"""
WALK = """
SELECT seq, grp, pool_name = ?1 AND status = 'done' AND finished_at < ?2
FROM work_pool WHERE seq > ?3 ORDER BY seq LIMIT ?4
"""
PURGED_TO = "SELECT purged_to FROM pool WHERE name = ?"
SET_PURGED_TO = "UPDATE pool SET purged_to = ?2 WHERE name = ?1"
DELETE = "DELETE FROM work_pool WHERE seq = ?"


def push(tx: WriteTransaction, pool: str, items: Sequence[model.NewItem]) -> list[str]:
    kinds = _kinds(items)
    has_tenants = any(item.tenant for item, _ in kinds)
    has_lanes = has_tenants or any(item.group for item, _ in kinds)
    tx.run(ADD_POOL, (pool, has_lanes, has_tenants))
    if any(item.key for item, _ in kinds):
        return [_push_keyed(tx, pool, item) for item in items]
    before = tx.db.total_changes()
    if len(kinds) == 1:
        _push_alike(tx, _shared(pool, items[0], tx.now), items)
    else:
        tx.run_many(PUSH, [(*_shared(pool, item, tx.now), *item[:2]) for item in items])
    if tx.db.total_changes() - before == len(items):
        for item, n in kinds:
            _count_pushed(tx, pool, item, n)
        return [item.id for item in items]
    return _repeat(tx, items, before)


def _kinds(items: Sequence[model.NewItem]) -> list[tuple[model.NewItem, int]]:
    """One item for each set of options, and how many have them: mostly the same for all."""
    options = items[0][2:]
    if all(item[2:] == options for item in items):
        return [(items[0], len(items))]
    return [(item, 1) for item in items]


def _push_alike(
    tx: WriteTransaction, shared: tuple[object, ...], items: Sequence[model.NewItem]
) -> None:
    whole = len(items) - len(items) % ALIKE
    flat = [value for item in items[:whole] for value in item[:2]]
    steps = range(0, len(flat), 2 * ALIKE)
    tx.run_many(PUSH_ALIKE, [(*shared, *flat[step : step + 2 * ALIKE]) for step in steps])
    tx.run_many(PUSH, [(*shared, *item[:2]) for item in items[whole:]])


def _repeat(tx: WriteTransaction, items: Sequence[model.NewItem], before: int) -> list[str]:
    """Some ids were there already: the call repeats one whose reply was lost. All or none of
    them were stored then, so there is nothing left to do."""
    if tx.db.total_changes() != before:
        raise KeyConflict("some, but not all, of these ids are in the store already")
    return [item.id for item in items]


def _push_keyed(tx: WriteTransaction, pool: str, item: model.NewItem) -> str:
    if item.key is not None:
        known = tx.run(FIND_KEY, (pool, item.key)).fetchone()
        if known is not None:
            return _same_item(known, item)
    before = tx.db.total_changes()
    tx.run(PUSH, (*_shared(pool, item, tx.now), *item[:2]))
    if tx.db.total_changes() != before:
        _count_pushed(tx, pool, item, 1)
    return item.id


def _same_item(known: tuple[str, str, str | None], item: model.NewItem) -> str:
    import json

    stored, sent = (json.dumps(json.loads(text), sort_keys=True) for text in (known[1], item.data))
    if stored != sent or known[2] != item.task:
        raise KeyConflict(
            f"the key {item.key!r} already names item {known[0]} with another payload or task"
        )
    return known[0]


def _shared(pool: str, item: model.NewItem, now: float) -> tuple[object, ...]:
    """The values of its row, but for id and payload."""
    _, _, max_retries, priority, delay, tenant, group, key, backlog, task = item
    run_at = now + delay if delay and not backlog else None
    status = model.BACKLOG if backlog else model.PENDING
    return (
        *(pool, status, max_retries, priority, tenant or "", group or "", key),
        *(now, run_at or now, run_at, task),
    )


def _count_pushed(tx: WriteTransaction, pool: str, item: model.NewItem, n: int) -> None:
    """So many items like this one."""
    group = item.group or ""
    tx.tally.count(pool, group, counters.BACKLOG if item.backlog else counters.PENDING, n)
    if item.delay and not item.backlog:
        tx.tally.count(pool, group, counters.DELAYED, n)
    tx.tally.happened(pool, "arrive", n)
    tx.rings = True


def get(tx: SqliteTransaction, item_id: str) -> model.WorkItem:
    row = tx.run(GET, (item_id,)).fetchone()
    if row is None:
        raise UnknownItem(f"the store has no item {item_id!r}")
    return item_of(row)


def pools_of(tx: SqliteTransaction, item_ids: Sequence[str]) -> list[str | None]:
    return [tx.run(POOL_OF, (item_id,)).get for item_id in item_ids]


def page(
    tx: SqliteTransaction, pool: str, status: str | None, limit: int, after: str | None
) -> list[model.WorkItem]:
    seq = 0 if after is None else seq_of(tx, after)
    if status is None:
        rows = tx.run(LIST, (pool, seq, limit))
    else:
        rows = tx.run(LIST_STATUS[status], (pool, seq, limit))
    return [item_of(row) for row in rows]


def seq_of(tx: SqliteTransaction, item_id: str) -> int:
    seq = tx.run(SEQ_OF, (item_id,)).get
    if seq is None:
        raise UnknownItem(f"the store has no item {item_id!r}")
    return int(seq)


def counts(tx: SqliteTransaction, pool: str, group: str | None = None) -> model.Counts:
    row = tx.run(COUNTS, (pool, group)).get
    numbers = dict(zip(counters.COUNTED, (n or 0 for n in row), strict=True))
    if numbers["delayed"]:
        numbers["delayed"] -= tx.run(COUNT_DUE, (pool, tx.now, group)).get
    return model.Counts(**numbers)


def cancel(tx: WriteTransaction, pool: str, item_ids: Sequence[str]) -> int:
    cancellable = (model.PENDING, model.BACKLOG, model.CLAIMED)
    return _move(tx, pool, item_ids, cancellable, CANCEL, counters.CANCELLED)


def requeue(tx: WriteTransaction, pool: str, item_ids: Sequence[str]) -> int:
    startable = (model.POISONED, model.CANCELLED, model.BACKLOG)
    return _move(tx, pool, item_ids, startable, REQUEUE, counters.PENDING)


def _move(
    tx: WriteTransaction,
    pool: str,
    item_ids: Sequence[str],
    movable: tuple[str, ...],
    statement: str,
    to: int,
) -> int:
    moved = 0
    for item_id in item_ids:
        row = tx.run(GET_STATE, (item_id,)).fetchone()
        if row is None:
            raise UnknownItem(f"the store has no item {item_id!r}")
        seq, owner, group, status, run_at = row
        if owner != pool or status not in movable:
            continue
        tx.run(statement, (seq, tx.now))
        tx.tally.moved(pool, group, counters.COLUMN[status], to)
        tx.takes = tx.takes or status == model.CLAIMED
        if run_at is not None:
            tx.tally.count(pool, group, counters.DELAYED, -1)
        moved += 1
    tx.rings = tx.rings or moved > 0
    return moved


def unpark(tx: WriteTransaction, pool: str, tasks: Sequence[str]) -> None:
    """Make the items ready that are parked for one of these tasks."""
    for task in set(tasks):
        for group, delayed in tx.run(PARKED_FOR, (pool, task)).fetchall():
            tx.tally.count(pool, group, counters.DELAYED, -delayed)
            tx.rings = True
        tx.run(UNPARK, (pool, task, tx.now))


def parked(tx: SqliteTransaction, pool: str, group: str | None) -> dict[str, int]:
    return dict(tx.run(PARKED, (pool, group)).fetchall())


def forget(tx: WriteTransaction, pool: str, status: str, before: float, limit: int) -> int:
    """Delete up to `limit` items that ended in this status before this moment."""
    if status == model.DONE:
        rows = _walk(tx, pool, before, limit)
    else:
        rows = tx.run(EXPIRED, (pool, status, before, limit)).fetchall()
    tx.run_many(DELETE, [(seq,) for seq, _ in rows])
    for _, group in rows:
        tx.tally.count(pool, group, counters.COLUMN[status], -1)
    return len(rows)


def _walk(tx: WriteTransaction, pool: str, before: float, limit: int) -> list[tuple[int, str]]:
    """Old done items, looking at a stretch of the table from where the last purge stopped; at
    its end the next purge begins anew."""
    start = tx.run(PURGED_TO, (pool,)).get or 0
    rows = tx.run(WALK, (pool, before, start, max(WALK_ROWS, limit))).fetchall()
    expired = [(seq, group) for seq, group, is_expired in rows if is_expired]
    if len(expired) > limit:
        stop = expired[limit - 1][0]
    else:
        stop = rows[-1][0] if len(rows) == max(WALK_ROWS, limit) else 0
    tx.run(SET_PURGED_TO, (pool, stop))
    return expired[:limit]
