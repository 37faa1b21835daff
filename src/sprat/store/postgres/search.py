"""Finding items by what is in them. Each step looks at a window of items, not at the whole pool."""

from __future__ import annotations

from sprat.core import item_filter, model
from sprat.core.errors import UnknownItem
from sprat.store.postgres.items import SEQ_OF, is_text
from sprat.store.postgres.rows import ITEM_COLUMNS, item_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.postgres.transaction import PostgresTransaction

FITS = """
    (($4::text IS NULL OR status = $4)
    AND ($5::bool IS NULL OR (status = 'pending'
         AND (hold IS NULL AND coalesce(run_at > $6::float8, false)) = $5))
    AND ($7::text IS NULL OR starts_with(id, $7))
    AND ($8::text IS NULL OR key = $8)
    AND ($9::text IS NULL OR tenant = $9)
    AND ($10::text IS NULL OR coalesce(position($10 IN error) > 0, false))
    AND ($11::float8 IS NULL OR created_at <= $11)
    AND ($12::float8 IS NULL OR created_at >= $12))
"""
# Where to look, each with the words of its index: failed items are found among a million done ones
# without meeting those.
SOURCES = {
    "key": ("key = $8::text",),
    "prefix": (f"id >= $7::text AND id < $7::text || '{item_filter.END}'",),
    model.CLAIMED: ("status = 'claimed'",),
    model.BACKLOG: ("status = 'backlog'",),
    model.POISONED: ("status = 'poisoned'",),
    model.CANCELLED: ("status = 'cancelled'",),
    model.PENDING: (
        "status = 'pending' AND run_at IS NULL",
        "status = 'pending' AND run_at IS NOT NULL",
    ),
}
IN_ORDER = """
SELECT seq, id, {fits} FROM sprat.work_pool
WHERE pool_name = $1 AND seq {beyond} $2::bigint ORDER BY seq {order} LIMIT $3
"""
BY_INDEX = """
WITH looked AS MATERIALIZED (
    SELECT place FROM ({places}) AS places ORDER BY place {order} LIMIT $3)
SELECT seq, id, {fits} FROM sprat.work_pool JOIN looked ON seq = place
WHERE pool_name = $1 ORDER BY seq {order}
"""
PLACES = """
    SELECT seq + 0 AS place FROM sprat.work_pool
    WHERE pool_name = $1 AND {source} AND seq + 0 {beyond} $2::bigint
"""
GET = f"SELECT {ITEM_COLUMNS} FROM sprat.work_pool WHERE id = ANY ($1::text[])"
FIRST, BEYOND = 0, 1 << 62


def statement(name: str, *, newest: bool) -> str:
    order, beyond = ("DESC", "<") if newest else ("ASC", ">")
    if not name:
        return IN_ORDER.format(fits=FITS, beyond=beyond, order=order)
    places = [PLACES.format(source=source, beyond=beyond) for source in SOURCES[name]]
    return BY_INDEX.format(fits=FITS, order=order, places=" UNION ALL ".join(places))


STATEMENTS = {
    (name, newest): statement(name, newest=newest)
    for name in ("", *SOURCES)
    for newest in (False, True)
}


def find(
    tx: PostgresTransaction, pool: str, wanted: model.ItemFilter, limit: int, after: str | None
) -> model.Found:
    place = _place(tx, after) or (BEYOND if wanted.newest else FIRST)
    look = STATEMENTS[item_filter.source(wanted), wanted.newest]
    window = item_filter.window(wanted, limit)
    rows = tx.run(look, (pool, place, window, *item_filter.values(wanted, tx.now))).fetchall()
    chosen, following = item_filter.chosen(rows, limit)
    ids = [item_id for _, item_id in chosen]
    items = {row[0]: item_of(row) for row in tx.run(GET, (ids,)).fetchall()}
    return model.Found(items=tuple(items[item_id] for item_id in ids), after=following)


def _place(tx: PostgresTransaction, after: str | None) -> int | None:
    if after is None:
        return None
    row = tx.run(SEQ_OF, (after,)).fetchone() if is_text(after) else None
    if row is None:
        raise UnknownItem(f"the store has no item {after!r}")
    return int(row[0])
