"""Running statistics: small buckets that push, claim and settle add to (see counters.py).

Rows of width 0 are totals. A fine bucket is added to them when it is rolled up, so a job adds to
its bucket alone. Their `at` is when the last of these buckets ended (0: scaling decisions, counted
at once): a coarse bucket that begins later was rolled up by a client that knows no totals. The
totals of now are the rows of width 0, all fine buckets, and such coarse ones.
"""

from __future__ import annotations

from sprat.core import histogram, model, reason_labels
from sprat.core.histogram import FINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.sqlite.connection import SqliteTransaction, WriteTransaction

COARSE = 900  # seconds a bucket, after a while
KEEP_FINE_SECONDS = 2 * 3600
KEEP_COARSE_SECONDS = 35 * 86400
EVER = 1 << 53  # later than every bucket

STATS = """
SELECT kind, bin, sum(n), sum(total), sum(squares) FROM pool_stats
WHERE pool_name = ?1 AND width IN (10, 900) AND at >= ?2 GROUP BY kind, bin
"""
HISTORY = """
SELECT at, width, kind, bin, sum(n), sum(total), sum(squares) FROM pool_stats
WHERE pool_name = ?1 AND width IN (10, 900) AND at + width > ?2
GROUP BY at, width, kind, bin
"""
UNCOUNTED = f"""
SELECT * FROM pool_stats WHERE pool_name = ?1 AND width = {FINE} AND at < ?2
UNION ALL
SELECT * FROM pool_stats WHERE pool_name = ?1 AND width = {COARSE} AND at < ?2
  AND at >= (SELECT coalesce(max(at), 0) FROM pool_stats WHERE pool_name = ?1 AND width = 0)
"""
IS_DUE = f"SELECT 1 FROM ({UNCOUNTED}) LIMIT 1"
TOTALS = f"""
SELECT kind, bin, sum(n), sum(total), sum(squares) FROM (
    {UNCOUNTED} UNION ALL SELECT * FROM pool_stats WHERE pool_name = ?1 AND width = 0 AND at < ?2)
GROUP BY kind, bin
"""
ADD_UP = f"""
INSERT INTO pool_stats SELECT ?1, 0, ?2, * FROM ({TOTALS}) WHERE true
ON CONFLICT DO UPDATE SET
    n = n + excluded.n, total = total + excluded.total, squares = squares + excluded.squares
"""
COUNT_DECISION = """
INSERT INTO pool_stats VALUES (?, 0, 0, ?, ?, 1, 0.0, 0.0) ON CONFLICT DO UPDATE SET n = n + 1
"""
ROLL_UP = f"""
INSERT INTO pool_stats
SELECT pool_name, {COARSE}, at / {COARSE} * {COARSE}, kind, bin, sum(n), sum(total), sum(squares)
FROM pool_stats WHERE pool_name = ?1 AND width = {FINE} AND at < ?2 GROUP BY 3, kind, bin
ON CONFLICT DO UPDATE SET
    n = n + excluded.n, total = total + excluded.total, squares = squares + excluded.squares
"""
FORGET = "DELETE FROM pool_stats WHERE pool_name = ?1 AND width = ?2 AND at < ?3"


def stats(tx: SqliteTransaction, pool: str, seconds: float) -> model.Stats:
    rows = tx.run(STATS, (pool, tx.now - seconds - FINE)).fetchall()
    return histogram.summarise(seconds, rows)


def history(tx: SqliteTransaction, pool: str, seconds: float) -> list[model.StatsBucket]:
    rows = tx.run(HISTORY, (pool, tx.now - seconds)).fetchall()
    return histogram.history((at, width, (*row,)) for at, width, *row in rows)


def totals(tx: SqliteTransaction, pool: str) -> model.Totals:
    return histogram.totals(tx.run(TOTALS, (pool, EVER)).fetchall())


def count_decision(tx: WriteTransaction, decision: model.Decision) -> None:
    number = reason_labels.number(decision.reason)
    tx.run(COUNT_DECISION, (decision.pool, decision.direction, number))


def roll_up(tx: WriteTransaction, pool: str) -> None:
    """Fold old fine buckets into coarse ones and drop the oldest of those."""
    before = int(tx.now - KEEP_FINE_SECONDS) // COARSE * COARSE
    if tx.run(IS_DUE, (pool, before)).get:
        tx.run(ADD_UP, (pool, before))
        tx.run(FORGET, (pool, 0, before))
    tx.run(ROLL_UP, (pool, before))
    tx.run(FORGET, (pool, FINE, before))
    tx.run(FORGET, (pool, COARSE, int(tx.now - KEEP_COARSE_SECONDS)))
