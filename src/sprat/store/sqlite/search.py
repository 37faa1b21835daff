"""Finding items by what is in them. Each step looks at a window of items, not at the whole pool."""

from __future__ import annotations

from sprat.core import item_filter, model
from sprat.store.sqlite.items import GET, seq_of
from sprat.store.sqlite.rows import ENDED, LIVE, READY, item_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.sqlite.transaction import SqliteTransaction

FITS = """
    (?4 IS NULL OR status = ?4)
    AND (?5 IS NULL OR (status = 'pending' AND (hold IS NULL AND coalesce(run_at > ?6, 0)) = ?5))
    AND (?7 IS NULL OR substr(id, 1, length(?7)) = ?7)
    AND (?8 IS NULL OR key = ?8)
    AND (?9 IS NULL OR tenant = ?9)
    AND (?10 IS NULL OR instr(error, ?10) > 0)
    AND (?11 IS NULL OR created_at <= ?11)
    AND (?12 IS NULL OR created_at >= ?12)
"""
# Where to look, each with the words of its index: failed items are found among a million done ones
# without meeting those.
SOURCES = {
    "key": ("key = ?8",),
    "prefix": (f"id >= ?7 AND id < ?7 || '{item_filter.END}'",),
    model.CLAIMED: (f"claimed_by IS NOT NULL AND {LIVE}",),
    model.BACKLOG: ("status = 'backlog'",),
    model.POISONED: (f"status = 'poisoned' AND {ENDED}",),
    model.CANCELLED: (f"status = 'cancelled' AND {ENDED}",),
    model.PENDING: (READY, "status = 'pending' AND run_at IS NOT NULL"),
}
IN_ORDER = """
SELECT seq, id, {fits} FROM work_pool
WHERE pool_name = ?1 AND seq {beyond} ?2 ORDER BY seq {order} LIMIT ?3
"""
BY_INDEX = """
SELECT seq, id, {fits} FROM work_pool WHERE seq IN (
    SELECT seq FROM ({places}) ORDER BY +seq {order} LIMIT ?3)
ORDER BY seq {order}
"""
PLACES = "SELECT seq FROM work_pool WHERE pool_name = ?1 AND {source} AND +seq {beyond} ?2"
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
    tx: SqliteTransaction, pool: str, wanted: model.ItemFilter, limit: int, after: str | None
) -> model.Found:
    first = BEYOND if wanted.newest else FIRST
    place = first if after is None else seq_of(tx, after)
    look = STATEMENTS[item_filter.source(wanted), wanted.newest]
    window = item_filter.window(wanted, limit)
    rows = tx.run(look, (pool, place, window, *item_filter.values(wanted, tx.now))).fetchall()
    chosen, following = item_filter.chosen(rows, limit)
    items = [tx.run(GET, (item_id,)).fetchall()[0] for _, item_id in chosen]
    return model.Found(items=tuple(map(item_of, items)), after=following)
