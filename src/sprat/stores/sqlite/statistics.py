"""Running statistics: small buckets that push, claim and settle add to (see tally.py)."""

from __future__ import annotations

from sprat import histogram, model
from sprat.histogram import FINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.stores.sqlite.connection import Transaction, WriteTransaction

COARSE = 900  # seconds a bucket, after a while
KEEP_FINE_SECONDS = 2 * 3600
KEEP_COARSE_SECONDS = 35 * 86400

STATS = """
SELECT kind, bin, sum(n), sum(total), sum(squares) FROM pool_stats
WHERE pool_name = ?1 AND width IN (10, 900) AND at >= ?2 GROUP BY kind, bin
"""
HISTORY = """
SELECT at, width, kind, bin, sum(n), sum(total), sum(squares) FROM pool_stats
WHERE pool_name = ?1 AND width IN (10, 900) AND at + width > ?2
GROUP BY at, width, kind, bin
"""
ROLL_UP = f"""
INSERT INTO pool_stats
SELECT pool_name, {COARSE}, at / {COARSE} * {COARSE}, kind, bin, sum(n), sum(total), sum(squares)
FROM pool_stats WHERE pool_name = ?1 AND width = {FINE} AND at < ?2 GROUP BY 3, kind, bin
ON CONFLICT DO UPDATE SET
    n = n + excluded.n, total = total + excluded.total, squares = squares + excluded.squares
"""
FORGET = "DELETE FROM pool_stats WHERE pool_name = ?1 AND width = ?2 AND at < ?3"


def stats(tx: Transaction, pool: str, seconds: float) -> model.Stats:
    rows = tx.run(STATS, (pool, tx.now - seconds - FINE)).fetchall()
    return histogram.summarise(seconds, rows)


def history(tx: Transaction, pool: str, seconds: float) -> list[model.StatsBucket]:
    rows = tx.run(HISTORY, (pool, tx.now - seconds)).fetchall()
    return histogram.history((at, width, (*row,)) for at, width, *row in rows)


def roll_up(tx: WriteTransaction, pool: str) -> None:
    """Fold old fine buckets into coarse ones and drop the oldest of those."""
    before = int(tx.now - KEEP_FINE_SECONDS) // COARSE * COARSE
    tx.run(ROLL_UP, (pool, before))
    tx.run(FORGET, (pool, FINE, before))
    tx.run(FORGET, (pool, COARSE, int(tx.now - KEEP_COARSE_SECONDS)))
