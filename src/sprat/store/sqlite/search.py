"""SQL of store/sql/search.py."""

from sprat.core import item_filter, model
from sprat.store.sql.search import statements
from sprat.store.sqlite.rows import ENDED, ITEM_COLUMNS, LIVE, READY

_FITS = """
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
_SOURCES = {
    "key": ("key = ?8",),
    "prefix": (f"id >= ?7 AND id < ?7 || '{item_filter.END}'",),
    model.CLAIMED: (f"claimed_by IS NOT NULL AND {LIVE}",),
    model.BACKLOG: ("status = 'backlog'",),
    model.POISONED: (f"status = 'poisoned' AND {ENDED}",),
    model.CANCELLED: (f"status = 'cancelled' AND {ENDED}",),
    model.PENDING: (READY, "status = 'pending' AND run_at IS NOT NULL"),
}
_IN_ORDER = f"""
SELECT seq, id, {_FITS} FROM work_pool
WHERE pool_name = ?1 AND seq {{beyond}} ?2 ORDER BY seq {{order}} LIMIT ?3
"""
_BY_INDEX = f"""
SELECT seq, id, {_FITS} FROM work_pool WHERE seq IN (
    SELECT seq FROM ({{places}}) ORDER BY +seq {{order}} LIMIT ?3)
ORDER BY seq {{order}}
"""
_PLACES = "SELECT seq FROM work_pool WHERE pool_name = ?1 AND {source} AND +seq {beyond} ?2"
STATEMENTS = statements(in_order=_IN_ORDER, by_index=_BY_INDEX, places=_PLACES, sources=_SOURCES)
GET = f"SELECT {ITEM_COLUMNS} FROM work_pool WHERE id = ?"
