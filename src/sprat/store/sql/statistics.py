"""Running statistics: small buckets that push, claim and settle add to (see core/counters.py).

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
    from sprat.store.sql.transaction import SqlTransaction

COARSE = 900  # seconds a bucket, after a while
KEEP_FINE_SECONDS = 2 * 3600
KEEP_COARSE_SECONDS = 35 * 86400
EVER = 1 << 53  # later than every bucket


def stats(tx: SqlTransaction, pool: str, seconds: float) -> model.Stats:
    rows = tx.rows(tx.sql.statistics.STATS, (pool, tx.now - seconds - FINE))
    return histogram.summarise(seconds, rows)


def history(tx: SqlTransaction, pool: str, seconds: float) -> list[model.StatsBucket]:
    rows = tx.rows(tx.sql.statistics.HISTORY, (pool, tx.now - seconds))
    return histogram.history((at, width, (*row,)) for at, width, *row in rows)


def totals(tx: SqlTransaction, pool: str) -> model.Totals:
    return histogram.totals(tx.rows(tx.sql.statistics.TOTALS, (pool, EVER)))


def count_decision(tx: SqlTransaction, decision: model.Decision) -> None:
    number = reason_labels.number(decision.reason)
    tx.run(tx.sql.statistics.COUNT_DECISION, (decision.pool, decision.direction, number))


def roll_up(tx: SqlTransaction, pool: str) -> None:
    """Fold old fine buckets into coarse ones and drop the oldest of those."""
    before = int(tx.now - KEEP_FINE_SECONDS) // COARSE * COARSE
    if tx.one(tx.sql.statistics.IS_DUE, (pool, before)):
        tx.lock("totals", pool)  # two purges would both count what another client rolled up
        for statement in tx.sql.statistics.ROLL_UP:
            tx.run(statement, (pool, before))
    tx.run(tx.sql.statistics.FORGET_COARSE, (pool, int(tx.now - KEEP_COARSE_SECONDS)))
