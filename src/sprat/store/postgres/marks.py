"""Applies the rules of leases.py: fresh leases after the store was away.

A verb that only renews leases calls `note` before its own transaction. A verb that judges leases
calls `check` in its transaction, too: no lease is judged by a moment that lies in an outage. The
mark is never waited for by a transaction that holds other locks, so it is part of no deadlock.
"""

from __future__ import annotations

from sprat.core.leases import QUIET_PART, TOUCH_SECONDS, LeaseState, after_gap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.postgres.connections import Sessions
    from sprat.store.postgres.transaction import PostgresTransaction

# A transaction of its own that need not wait for the disk: a lost mark only makes a gap longer.
NOTE = """
SELECT steady FROM (SELECT set_config('synchronous_commit', 'off', true)) AS soon,
                   sprat.note_mark($1::float8, $2::float8)
"""
CHECK = "SELECT now, steady FROM sprat.note_mark(NULL, $1::float8)"
LOCK = "SELECT sprat.clock() FROM sprat.mark FOR UPDATE"
TRY_LOCK = f"{LOCK} SKIP LOCKED"
LOOK = """
SELECT sprat.clock(), at, server <> extract(epoch FROM pg_postmaster_start_time())::float8
FROM sprat.mark
"""
LIVE = """
SELECT worker_id, lease_seconds, lease_until, renewals FROM sprat.worker_registry
WHERE status IN ('starting', 'active', 'terminating') ORDER BY worker_id
"""
# A worker that gave a sign of life in the meantime, which does not wait for the lock on the mark,
# keeps what it got for it.
RENEW = """
UPDATE sprat.worker_registry SET lease_until = $3, renewals = $4
WHERE worker_id = $1 AND lease_until = $2 AND last_heartbeat < $5
  AND status IN ('starting', 'active', 'terminating')
"""
SET = """
UPDATE sprat.mark SET at = $1, server = extract(epoch FROM pg_postmaster_start_time())::float8
"""


def note(connections: Sessions) -> None:
    """Before a verb that renews a lease. It does not wait for a process that renews all of them."""
    if not _is_steady(connections):
        connections.write(renew, wait=False)


def touch(connections: Sessions) -> None:
    if not _is_steady(connections):
        connections.write(renew)


def _is_steady(connections: Sessions) -> bool:
    return bool(connections.call(NOTE, (TOUCH_SECONDS, QUIET_PART))[0][0])


def check(tx: PostgresTransaction) -> None:
    """Renew leases if the store was away until now; this is the transaction's time."""
    tx.now, steady = tx.run(CHECK, (QUIET_PART,)).fetchall()[0]
    if not steady:
        renew(tx)


def renew(tx: PostgresTransaction, *, wait: bool = True) -> None:
    """Give fresh leases after an outage, once: a process that comes second finds a new mark.
    Without `wait` it does not stop for the first."""
    began = tx.one(LOCK if wait else TRY_LOCK)
    if began is None:
        return
    tx.now, marked_at, restarted = tx.run(LOOK).fetchall()[0]
    before = {row[0]: LeaseState.of(row) for row in tx.run(LIVE).fetchall()}
    renewed = after_gap(before.values(), marked_at=marked_at, now=tx.now, restarted=restarted)
    tx.run_many(RENEW, [(w, before[w].until, until, n, began) for w, _, until, n in renewed])
    tx.run(SET, (tx.now,))
