"""SQL of store/sql/statistics.py. Each server process adds to rows of its own (shard); old ones are
rolled up into one."""

from sprat.core.histogram import FINE
from sprat.store.sql.statistics import COARSE

STATS = """
SELECT kind, bin, sum(n)::bigint, sum(total), sum(squares) FROM sprat.pool_stats
WHERE pool_name = $1 AND width IN (10, 900) AND at >= $2::float8 GROUP BY kind, bin
"""
HISTORY = """
SELECT at::float8, width, kind, bin, sum(n)::bigint, sum(total), sum(squares)
FROM sprat.pool_stats
WHERE pool_name = $1 AND width IN (10, 900) AND at + width > $2::float8
GROUP BY at, width, kind, bin
"""
_UNCOUNTED_COARSE = f"""
SELECT kind, bin, n, total, squares FROM sprat.pool_stats
WHERE pool_name = $1 AND width = {COARSE} AND at < $2
  AND at >= (SELECT coalesce(max(at), 0) FROM sprat.pool_stats WHERE pool_name = $1 AND width = 0)
"""
_FINE_OR_TOTALS = f"""
SELECT kind, bin, n, total, squares FROM sprat.pool_stats
WHERE pool_name = $1 AND width IN (0, {FINE}) AND at < $2
"""
TOTALS = f"""
SELECT kind, bin, sum(n)::bigint, sum(total), sum(squares)
FROM ({_FINE_OR_TOTALS} UNION ALL {_UNCOUNTED_COARSE}) AS counted GROUP BY kind, bin
"""
COUNT_DECISION = """
INSERT INTO sprat.pool_stats AS s VALUES ($1, 0, 0, $2, $3, 0, 1, 0, 0)
ON CONFLICT (pool_name, width, at, kind, bin, shard) DO UPDATE SET n = s.n + 1
"""
IS_DUE = f"""
SELECT true FROM (
    SELECT kind, bin, n, total, squares FROM sprat.pool_stats
    WHERE pool_name = $1 AND width = {FINE} AND at < $2
    UNION ALL {_UNCOUNTED_COARSE}) AS uncounted LIMIT 1
"""
_ROLL_UP = f"""
WITH fine AS (
    DELETE FROM sprat.pool_stats WHERE pool_name = $1 AND width = {FINE} AND at < $2
    RETURNING *),
totals AS (
    DELETE FROM sprat.pool_stats WHERE pool_name = $1 AND width = 0 AND at < $2
    RETURNING kind, bin, n, total, squares),
counted AS (
    SELECT kind, bin, n, total, squares FROM fine
    UNION ALL SELECT * FROM totals
    UNION ALL {_UNCOUNTED_COARSE})
INSERT INTO sprat.pool_stats AS s
SELECT $1, {COARSE}, at / {COARSE} * {COARSE}, kind, bin, 0, sum(n), sum(total), sum(squares)
FROM fine GROUP BY 3, kind, bin
UNION ALL
SELECT $1, 0, $2, kind, bin, 0, sum(n), sum(total), sum(squares) FROM counted GROUP BY kind, bin
ON CONFLICT (pool_name, width, at, kind, bin, shard) DO UPDATE SET
    n = s.n + excluded.n, total = s.total + excluded.total, squares = s.squares + excluded.squares
"""
FORGET_COARSE = f"""
DELETE FROM sprat.pool_stats WHERE pool_name = $1 AND width = {COARSE} AND at < $2
"""
ROLL_UP = (_ROLL_UP,)
