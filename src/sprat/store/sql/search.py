"""Finding items by what is in them. Each step looks at a window of items, not at the whole pool."""

from __future__ import annotations

from sprat.core import item_filter, model
from sprat.store.sql.items import seq_of
from sprat.store.sql.rows import item_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from sprat.store.sql.transaction import SqlTransaction

FIRST, BEYOND = 0, 1 << 62


def find(
    tx: SqlTransaction, pool: str, wanted: model.ItemFilter, limit: int, after: str | None
) -> model.Found:
    first = BEYOND if wanted.newest else FIRST
    place = first if after is None else seq_of(tx, after)
    look = tx.sql.search.STATEMENTS[item_filter.source(wanted), wanted.newest]
    window = item_filter.window(wanted, limit)
    rows = tx.rows(look, (pool, place, window, *item_filter.values(wanted, tx.now)))
    chosen, following = item_filter.chosen(rows, limit)
    ids = [item_id for _, item_id in chosen]
    items = {row[0]: item_of(row) for row in tx.rows_of(tx.sql.search.GET, ids)}
    return model.Found(items=tuple(items[item_id] for item_id in ids), after=following)


def statements(
    *, in_order: str, by_index: str, places: str, sources: Mapping[str, tuple[str, ...]]
) -> dict[tuple[str, bool], str]:
    """The statement for each source of items, oldest or newest first. The templates have places
    for `order` and `beyond`, `places` also for a `source`, and `by_index` for `places`."""
    directions = {False: ("ASC", ">"), True: ("DESC", "<")}
    texts = {}
    for newest, (order, beyond) in directions.items():
        texts["", newest] = in_order.format(order=order, beyond=beyond)
        for name, parts in sources.items():
            each = [places.format(source=source, beyond=beyond) for source in parts]
            texts[name, newest] = by_index.format(order=order, places=" UNION ALL ".join(each))
    return texts
