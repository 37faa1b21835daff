"""Push: items of one kind go into one statement."""

from __future__ import annotations

from sprat.core import counters, model
from sprat.core.errors import KeyConflict
from sprat.store.sql.items import check_same_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.sqlite.transaction import WriteTransaction

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
            item_id, data, task = known
            check_same_job(item_id, data, task, item)
            return str(item_id)
    before = tx.db.total_changes()
    tx.run(PUSH, (*_shared(pool, item, tx.now), *item[:2]))
    if tx.db.total_changes() != before:
        _count_pushed(tx, pool, item, 1)
    return item.id


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
