"""Running statistics: small buckets that push, claim and settle add to (see tally.py). Each server
process adds to rows of its own (shard); old ones are rolled up into one."""

from __future__ import annotations

from sprat import model
from sprat.histogram import summarise
from sprat.tally import FINE

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
SELECT at::float8, width, kind, sum(n)::bigint, sum(total) FROM sprat.pool_stats
WHERE pool_name = $1 AND width IN (10, 900) AND at + width > $2::float8
GROUP BY at, width, kind ORDER BY at, width
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
    return summarise(seconds, rows)


def history(tx: Transaction, pool: str, seconds: float) -> list[model.StatsBucket]:
    buckets: dict[tuple[float, float], dict[str, float]] = {}
    for at, width, kind, n, total in tx.run(HISTORY, (pool, tx.now - seconds)).fetchall():
        bucket = buckets.setdefault((at, width), {})
        bucket[kind] = n
        bucket[kind + "_seconds"] = total
    return [
        model.StatsBucket(
            at=at,
            seconds=width,
            arrivals=int(bucket.get("arrive", 0)),
            starts=int(bucket.get("wait", 0)),
            finished=int(bucket.get("done", 0)),
            failed=int(bucket.get("fail", 0)),
            wait_seconds=bucket.get("wait_seconds", 0.0),
            run_seconds=bucket.get("run_seconds", 0.0),
        )
        for (at, width), bucket in buckets.items()
    ]


def roll_up(tx: Transaction, pool: str) -> None:
    """Fold old fine buckets into coarse ones and drop the oldest of those."""
    before = int(tx.now - KEEP_FINE_SECONDS) // COARSE * COARSE
    tx.run(ROLL_UP, (pool, before))
    tx.run(FORGET, (pool, COARSE, int(tx.now - KEEP_COARSE_SECONDS)))
