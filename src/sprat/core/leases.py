"""Which leases start afresh after the store was away. Pure: no clock, no store.

A store notes when it last worked: every lease that is renewed, every pass and every process that
waits leaves such a mark. A gap between two marks means that no process could reach the store, or
that none tried. Live workers must not be declared dead for it, dead ones not be kept for ever:

- After an outage (a gap longer than OUTAGE_PART of the shortest live lease, or a server that was
  started anew) every lease that had not ended when the gap began starts afresh.
- After a shorter gap, longer than QUIET_PART, a lease that ended inside it is extended by that
  part: its worker may have been unable to send a heartbeat in time.
- Both at most MOST_RENEWALS times without a sign of life from the worker.
"""

from __future__ import annotations

from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

OUTAGE_PART = 0.75  # heartbeats come every half lease, so a store in use has no such gap
QUIET_PART = 0.25
TOUCH_PART = 0.15  # processes that wait touch the store this often: they leave no gap, if in time
MOST_RENEWALS = 3
TOUCH_SECONDS = 0.1  # a connection marks the store at most this often


class LeaseState(Record):
    """A live worker's lease, or the deadline of a launch that has not registered yet."""

    worker_id: str
    seconds: float
    until: float
    renewals: int = 0


def after_gap(
    leases: Iterable[LeaseState], *, marked_at: float, now: float, restarted: bool = False
) -> list[LeaseState]:
    """The leases that change, as they are from now on. `restarted`: the server is another run."""
    live = list(leases)
    if not live:
        return []
    shortest = min(lease.seconds for lease in live)
    gap = now - marked_at
    if restarted or gap > OUTAGE_PART * shortest:
        running = [lease for lease in live if lease.until > marked_at and _may(lease)]
        return [_renewed(lease, now, 1.0) for lease in running]
    if gap <= QUIET_PART * shortest:
        return []
    ended = [lease for lease in live if marked_at < lease.until <= now and _may(lease)]
    return [_renewed(lease, now, QUIET_PART) for lease in ended]


def _may(lease: LeaseState) -> bool:
    return lease.renewals < MOST_RENEWALS


def _renewed(lease: LeaseState, now: float, part: float) -> LeaseState:
    until = max(lease.until, now + part * lease.seconds)
    return lease.replace(until=until, renewals=lease.renewals + 1)


def why_lost(threshold: float | None) -> str:
    """The reason of a worker that a pass takes for dead: by its lease, or by an explicit number
    of seconds."""
    if threshold is None:
        return "its lease ended without a heartbeat"
    return f"no heartbeat for more than {threshold:g} s, the threshold of the pass that looked"
