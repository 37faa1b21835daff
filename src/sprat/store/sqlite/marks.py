"""The mark: when the store last worked, and what a gap means for leases (see leases.py).

Every step that judges or renews leases calls `touch` first. A claim does so when the mark is old.
"""

from __future__ import annotations

from sprat.core.leases import TOUCH_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.sqlite.transaction import WriteTransaction

MARK = "SELECT value FROM meta WHERE name = 'mark'"
SET = "INSERT OR REPLACE INTO meta VALUES ('mark', ?)"
LEASES = """
SELECT worker_id, lease_seconds, lease_until, renewals FROM worker_registry
WHERE status IN ('starting', 'active', 'terminating')
"""
RENEW = "UPDATE worker_registry SET lease_until = ?2, renewals = ?3 WHERE worker_id = ?1"


def touch(tx: WriteTransaction) -> float:
    """Mark that the store works now, after a look at how long it did not. When this is due again,
    by the store's clock."""
    marked_at: float | None = tx.run(MARK).get
    if marked_at is not None and tx.now - marked_at <= TOUCH_SECONDS:
        return marked_at + TOUCH_SECONDS
    if marked_at is not None:
        _renew(tx, marked_at)
    tx.run(SET, (tx.now,))
    return tx.now + TOUCH_SECONDS


def _renew(tx: WriteTransaction, marked_at: float) -> None:
    from sprat.core.leases import LeaseState, after_gap

    live = [LeaseState.of(row) for row in tx.run(LEASES)]
    renewed = after_gap(live, marked_at=marked_at, now=tx.now)
    tx.run_many(RENEW, [(lease.worker_id, lease.until, lease.renewals) for lease in renewed])
