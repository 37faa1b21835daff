"""Items outside of a claim: look, cancel, requeue, count, purge."""

from __future__ import annotations

from sprat.core import counters, model
from sprat.core.errors import KeyConflict, UnknownItem
from sprat.store.sql.rows import item_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.sql.transaction import SqlTransaction

WALK_ROWS = 10_000  # looked at by one purge


def get(tx: SqlTransaction, item_id: str) -> model.WorkItem:
    rows = tx.rows(tx.sql.items.GET, (item_id,)) if is_text(item_id) else []
    if not rows:
        raise unknown(item_id)
    return item_of(rows[0])


def is_text(item_id: str) -> bool:
    """Whether PostgreSQL could hold it at all."""
    return "\0" not in item_id


def unknown(item_id: str) -> UnknownItem:
    return UnknownItem(f"the store has no item {item_id!r}")


def pools_of(tx: SqlTransaction, item_ids: Sequence[str]) -> list[str | None]:
    rows = tx.rows_of(tx.sql.items.POOLS_OF, filter(is_text, item_ids))
    pools: dict[str, str] = dict(rows)
    return [pools.get(item_id) for item_id in item_ids]


def page(
    tx: SqlTransaction, pool: str, status: str | None, limit: int, after: str | None
) -> list[model.WorkItem]:
    seq = 0 if after is None else seq_of(tx, after)
    statement = tx.sql.items.LIST if status is None else tx.sql.items.LIST_STATUS[status]
    return [item_of(row) for row in tx.rows(statement, (pool, seq, limit))]


def seq_of(tx: SqlTransaction, item_id: str) -> int:
    rows = tx.rows(tx.sql.items.SEQ_OF, (item_id,)) if is_text(item_id) else []
    if not rows:
        raise unknown(item_id)
    return int(rows[0][0])


def counts(tx: SqlTransaction, pool: str, group: str | None = None) -> model.Counts:
    *row, due = tx.rows(tx.sql.items.COUNTS, (pool, group, tx.known_now))[0]
    numbers = dict(zip(counters.COUNTED, row, strict=True))
    numbers["delayed"] -= due
    return model.Counts(**numbers)


def parked(tx: SqlTransaction, pool: str, group: str | None) -> dict[str, int]:
    """How many items wait for a worker that knows their task, by task."""
    return dict(tx.rows(tx.sql.items.PARKED, (pool, group)))


def check_same_job(item_id: str, data: str, task: str | None, item: model.NewItem) -> None:
    """A key that is in use names this item: the push has to be for the same job."""
    import json

    stored, sent = (json.dumps(json.loads(text), sort_keys=True) for text in (data, item.data))
    if stored != sent or task != item.task:
        raise KeyConflict(
            f"the key {item.key!r} already names item {item_id} with another payload or task"
        )


# -- changes ------------------------------------------------------------------------------------


def cancel(tx: SqlTransaction, pool: str, item_ids: Sequence[str]) -> int:
    cancellable = (model.PENDING, model.BACKLOG, model.CLAIMED)
    return _move(tx, pool, item_ids, cancellable, tx.sql.items.CANCEL, counters.CANCELLED)


def requeue(tx: SqlTransaction, pool: str, item_ids: Sequence[str]) -> int:
    startable = (model.POISONED, model.CANCELLED, model.BACKLOG)
    return _move(tx, pool, item_ids, startable, tx.sql.items.REQUEUE, counters.PENDING)


def _move(
    tx: SqlTransaction,
    pool: str,
    item_ids: Sequence[str],
    movable: tuple[str, ...],
    statement: str,
    to: int,
) -> int:
    rows = tx.rows_of(tx.sql.items.LOCK, filter(is_text, item_ids))
    items = {row[0]: row for row in rows}
    changes = []
    for item_id in dict.fromkeys(item_ids):
        if item_id not in items:
            raise unknown(item_id)
        _, owner, group, status, run_at, claimed_by = items[item_id]
        if owner != pool or status not in movable:
            continue
        changes.append((item_id, tx.now))
        if status == model.CLAIMED:
            tx.interrupt(claimed_by)
        tx.tally.moved(pool, group, counters.COLUMN[status], to)
        if run_at is not None:
            tx.tally.count(pool, group, counters.DELAYED, -1)
    tx.run_many(statement, changes)
    if changes:
        tx.wake(pool)
    return len(changes)


def unpark(tx: SqlTransaction, pool: str, tasks: Sequence[str]) -> None:
    """Make the items ready that waited for a worker that knows one of these tasks."""
    rows = tx.rows(tx.sql.items.PARKED_FOR, (pool, tx.array(tasks)))
    if not rows:
        return
    tx.run(tx.sql.items.UNPARK, (tx.array(item_id for item_id, _, _ in rows), tx.now))
    for _, group, run_at in rows:
        if run_at is not None:
            tx.tally.count(pool, group, counters.DELAYED, -1)
    tx.wake(pool)


# -- retention ----------------------------------------------------------------------------------


def forget(tx: SqlTransaction, pool: str, status: str, before: float, limit: int) -> int:
    """Delete up to `limit` items that ended in this status before this moment."""
    if status == model.DONE:
        rows = tx.rows_of(tx.sql.items.FORGET_DONE, _walk(tx, pool, before, limit))
    else:
        rows = tx.rows(tx.sql.items.FORGET_ENDED, (pool, status, before, limit))
    for (group,) in rows:
        tx.tally.count(pool, group, counters.COLUMN[status], -1)
    return len(rows)


def _walk(tx: SqlTransaction, pool: str, before: float, limit: int) -> list[str]:
    """Old done items, looking at a stretch of the table from where the last purge stopped; at
    its end the next purge begins anew."""
    start = tx.one(tx.sql.items.PURGED_TO, (pool,)) or 0
    stretch = max(WALK_ROWS, limit)
    rows = tx.rows(tx.sql.items.WALK, (pool, before, start, stretch))
    expired = [(seq, item_id) for seq, item_id, is_expired in rows if is_expired]
    if len(expired) > limit:
        stop = expired[limit - 1][0] if limit else start
    else:
        stop = rows[-1][0] if len(rows) == stretch else 0
    tx.run(tx.sql.items.SET_PURGED_TO, (pool, stop))
    return [item_id for _, item_id in expired[:limit]]
