"""Writes what a transaction summed up: see core/counters.py."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.counters import HeldStatistics
    from sprat.store.sqlite.transaction import WriteTransaction

ADD_COUNTS = """
UPDATE pool_count SET pending = pending + ?3, delayed = delayed + ?4, backlog = backlog + ?5,
       claimed = claimed + ?6, done = done + ?7, poisoned = poisoned + ?8,
       cancelled = cancelled + ?9
WHERE pool_name = ?1 AND grp = ?2
"""
FIRST_COUNTS = "INSERT INTO pool_count VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
ADD_STATS = """
INSERT INTO pool_stats VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    n = n + excluded.n, total = total + excluded.total, squares = squares + excluded.squares
"""


def write_counts(tx: WriteTransaction) -> None:
    for key, row in tx.tally.counts.items():
        tx.run(ADD_COUNTS, (*key, *row))
        if not tx.db.changes():
            tx.run(FIRST_COUNTS, (*key, *row))


def write_stats(tx: WriteTransaction, notes: HeldStatistics) -> None:
    if notes or tx.tally.stats:
        tx.run_many(ADD_STATS, notes.rows(tx.tally.stats, tx.now))
