"""SQL of store/sql/statistics.py."""

from sprat.core.histogram import FINE
from sprat.store.sql.statistics import COARSE

STATS = """
SELECT kind, bin, sum(n), sum(total), sum(squares) FROM pool_stats
WHERE pool_name = ?1 AND width IN (10, 900) AND at >= ?2 GROUP BY kind, bin
"""
HISTORY = """
SELECT at, width, kind, bin, sum(n), sum(total), sum(squares) FROM pool_stats
WHERE pool_name = ?1 AND width IN (10, 900) AND at + width > ?2
GROUP BY at, width, kind, bin
"""
_UNCOUNTED = f"""
SELECT * FROM pool_stats WHERE pool_name = ?1 AND width = {FINE} AND at < ?2
UNION ALL
SELECT * FROM pool_stats WHERE pool_name = ?1 AND width = {COARSE} AND at < ?2
  AND at >= (SELECT coalesce(max(at), 0) FROM pool_stats WHERE pool_name = ?1 AND width = 0)
"""
IS_DUE = f"SELECT 1 FROM ({_UNCOUNTED}) LIMIT 1"
TOTALS = f"""
SELECT kind, bin, sum(n), sum(total), sum(squares) FROM (
    {_UNCOUNTED} UNION ALL SELECT * FROM pool_stats WHERE pool_name = ?1 AND width = 0 AND at < ?2)
GROUP BY kind, bin
"""
_ADD_UP = f"""
INSERT INTO pool_stats SELECT ?1, 0, ?2, * FROM ({TOTALS}) WHERE true
ON CONFLICT DO UPDATE SET
    n = n + excluded.n, total = total + excluded.total, squares = squares + excluded.squares
"""
COUNT_DECISION = """
INSERT INTO pool_stats VALUES (?, 0, 0, ?, ?, 1, 0.0, 0.0) ON CONFLICT DO UPDATE SET n = n + 1
"""
_ROLL_UP_FINE = f"""
INSERT INTO pool_stats
SELECT pool_name, {COARSE}, at / {COARSE} * {COARSE}, kind, bin, sum(n), sum(total), sum(squares)
FROM pool_stats WHERE pool_name = ?1 AND width = {FINE} AND at < ?2 GROUP BY 3, kind, bin
ON CONFLICT DO UPDATE SET
    n = n + excluded.n, total = total + excluded.total, squares = squares + excluded.squares
"""
_FORGET = "DELETE FROM pool_stats WHERE pool_name = ?1 AND width = {} AND at < ?2"
FORGET_COARSE = _FORGET.format(COARSE)
ROLL_UP = (_ADD_UP, _FORGET.format(0), _ROLL_UP_FINE, _FORGET.format(FINE))
