"""SQL of store/sql/search.py."""

from sprat.core import item_filter, model
from sprat.store.postgres.rows import ITEM_COLUMNS
from sprat.store.sql.search import statements

_FITS = """
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
_SOURCES = {
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
_IN_ORDER = f"""
SELECT seq, id, {_FITS} FROM sprat.work_pool
WHERE pool_name = $1 AND seq {{beyond}} $2::bigint ORDER BY seq {{order}} LIMIT $3
"""
_BY_INDEX = f"""
WITH looked AS MATERIALIZED (
    SELECT place FROM ({{places}}) AS places ORDER BY place {{order}} LIMIT $3)
SELECT seq, id, {_FITS} FROM sprat.work_pool JOIN looked ON seq = place
WHERE pool_name = $1 ORDER BY seq {{order}}
"""
_PLACES = """
    SELECT seq + 0 AS place FROM sprat.work_pool
    WHERE pool_name = $1 AND {source} AND seq + 0 {beyond} $2::bigint
"""
GET = f"SELECT {ITEM_COLUMNS} FROM sprat.work_pool WHERE id = ANY ($1::text[])"
STATEMENTS = statements(in_order=_IN_ORDER, by_index=_BY_INDEX, places=_PLACES, sources=_SOURCES)
