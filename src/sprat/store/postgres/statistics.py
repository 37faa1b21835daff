"""Running statistics: small buckets that push, claim and settle add to (see counters.py). Each
server process adds to rows of its own (shard); old ones are rolled up into one.

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
    from sprat.store.postgres.transaction import PostgresTransaction

COARSE = 900  # seconds a bucket, after a while
KEEP_FINE_SECONDS = 2 * 3600
KEEP_COARSE_SECONDS = 35 * 86400
EVER = 1 << 53  # later than every bucket

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
UNCOUNTED_COARSE = f"""
SELECT kind, bin, n, total, squares FROM sprat.pool_stats
WHERE pool_name = $1 AND width = {COARSE} AND at < $2
  AND at >= (SELECT coalesce(max(at), 0) FROM sprat.pool_stats WHERE pool_name = $1 AND width = 0)
"""
FINE_OR_TOTALS = f"""
SELECT kind, bin, n, total, squares FROM sprat.pool_stats
WHERE pool_name = $1 AND width IN (0, {FINE}) AND at < $2
"""
TOTALS = f"""
SELECT kind, bin, sum(n)::bigint, sum(total), sum(squares)
FROM ({FINE_OR_TOTALS} UNION ALL {UNCOUNTED_COARSE}) AS counted GROUP BY kind, bin
"""
COUNT_DECISION = """
INSERT INTO sprat.pool_stats AS s VALUES ($1, 0, 0, $2, $3, 0, 1, 0, 0)
ON CONFLICT (pool_name, width, at, kind, bin, shard) DO UPDATE SET n = s.n + 1
"""
IS_DUE = f"""
SELECT true FROM (
    SELECT kind, bin, n, total, squares FROM sprat.pool_stats
    WHERE pool_name = $1 AND width = {FINE} AND at < $2
    UNION ALL {UNCOUNTED_COARSE}) AS uncounted LIMIT 1
"""
# One purge of a pool at a time: two would both count what another client rolled up.
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('sprat.totals ' || $1, 0))"
ROLL_UP = f"""
WITH fine AS (
    DELETE FROM sprat.pool_stats WHERE pool_name = $1 AND width = {FINE} AND at < $2
    RETURNING *),
totals AS (
    DELETE FROM sprat.pool_stats WHERE pool_name = $1 AND width = 0 AND at < $2
    RETURNING kind, bin, n, total, squares),
counted AS (
    SELECT kind, bin, n, total, squares FROM fine
    UNION ALL SELECT * FROM totals
    UNION ALL {UNCOUNTED_COARSE})
INSERT INTO sprat.pool_stats AS s
SELECT $1, {COARSE}, at / {COARSE} * {COARSE}, kind, bin, 0, sum(n), sum(total), sum(squares)
FROM fine GROUP BY 3, kind, bin
UNION ALL
SELECT $1, 0, $2, kind, bin, 0, sum(n), sum(total), sum(squares) FROM counted GROUP BY kind, bin
ON CONFLICT (pool_name, width, at, kind, bin, shard) DO UPDATE SET
    n = s.n + excluded.n, total = s.total + excluded.total, squares = s.squares + excluded.squares
"""
FORGET = "DELETE FROM sprat.pool_stats WHERE pool_name = $1 AND width = $2 AND at < $3"


def stats(tx: PostgresTransaction, pool: str, seconds: float) -> model.Stats:
    rows = tx.run(STATS, (pool, tx.now - seconds - FINE)).fetchall()
    return histogram.summarise(seconds, rows)


def history(tx: PostgresTransaction, pool: str, seconds: float) -> list[model.StatsBucket]:
    rows = tx.run(HISTORY, (pool, tx.now - seconds)).fetchall()
    return histogram.history((at, width, (*row,)) for at, width, *row in rows)


def totals(tx: PostgresTransaction, pool: str) -> model.Totals:
    return histogram.totals(tx.run(TOTALS, (pool, EVER)).fetchall())


def count_decision(tx: PostgresTransaction, decision: model.Decision) -> None:
    number = reason_labels.number(decision.reason)
    tx.run(COUNT_DECISION, (decision.pool, decision.direction, number))


def roll_up(tx: PostgresTransaction, pool: str) -> None:
    """Fold old fine buckets into coarse ones and drop the oldest of those."""
    before = int(tx.now - KEEP_FINE_SECONDS) // COARSE * COARSE
    if tx.one(IS_DUE, (pool, before)):
        tx.run(LOCK, (pool,))
        tx.run(ROLL_UP, (pool, before))
    tx.run(FORGET, (pool, COARSE, int(tx.now - KEEP_COARSE_SECONDS)))
