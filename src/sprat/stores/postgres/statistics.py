"""Running statistics: small buckets that push, claim and settle add to (see tally.py). Each server
process adds to rows of its own (shard); old ones are rolled up into one."""

from __future__ import annotations

from sprat import histogram, model
from sprat.histogram import FINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.stores.postgres.transaction import Transaction

COARSE = 900  # seconds a bucket, after a while
KEEP_FINE_SECONDS = 2 * 3600
KEEP_COARSE_SECONDS = 35 * 86400

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
ROLL_UP = f"""
WITH old AS (
    DELETE FROM sprat.pool_stats WHERE pool_name = $1 AND width = {FINE} AND at < $2
    RETURNING *)
INSERT INTO sprat.pool_stats AS s
SELECT pool_name, {COARSE}, at / {COARSE} * {COARSE}, kind, bin, 0, sum(n), sum(total), sum(squares)
FROM old GROUP BY 1, 3, kind, bin
ON CONFLICT (pool_name, width, at, kind, bin, shard) DO UPDATE SET
    n = s.n + excluded.n, total = s.total + excluded.total, squares = s.squares + excluded.squares
"""
FORGET = "DELETE FROM sprat.pool_stats WHERE pool_name = $1 AND width = $2 AND at < $3"


def stats(tx: Transaction, pool: str, seconds: float) -> model.Stats:
    rows = tx.run(STATS, (pool, tx.now - seconds - FINE)).fetchall()
    return histogram.summarise(seconds, rows)


def history(tx: Transaction, pool: str, seconds: float) -> list[model.StatsBucket]:
    rows = tx.run(HISTORY, (pool, tx.now - seconds)).fetchall()
    return histogram.history((at, width, (*row,)) for at, width, *row in rows)


def roll_up(tx: Transaction, pool: str) -> None:
    """Fold old fine buckets into coarse ones and drop the oldest of those."""
    before = int(tx.now - KEEP_FINE_SECONDS) // COARSE * COARSE
    tx.run(ROLL_UP, (pool, before))
    tx.run(FORGET, (pool, COARSE, int(tx.now - KEEP_COARSE_SECONDS)))
