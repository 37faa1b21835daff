"""Push: functions of the server in pushing.sql, one round trip each."""

from __future__ import annotations

from sprat.store.postgres.arrays import texts
from sprat.store.sql.items import check_same_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.core import model
    from sprat.store.postgres.connections import Sessions
    from sprat.store.postgres.transaction import PostgresTransaction

PUSH = """
SELECT ids, others, tasks
FROM sprat.push_v2($1, $2::text[], $3::text[], $4::int[], $5::int[], $6::float8[], $7::text[],
                   $8::text[], $9::text[], $10::bool[], $11::text[])
"""
PUSH_ONE = "SELECT sprat.push_one_v2($1, $2, $3, $4::int, $5::int, $6)"


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
            check_same_job(known, other, task, item)
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
