"""The policy of a replica set: so many waiting items to a worker, between a minimum and a maximum.

    wanted = ceil(waiting / target_pending_per_worker)

Running work does not count in that formula, so it alone would send workers away in the middle of a
backlog: the busy ones stay, and beside them as many as the waiting items need.
"""

from __future__ import annotations

from sprat.core import fields
from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.core.record import Record
from sprat.scaling import sizing

NAME = "pending-per-worker"


class Options(Record):
    target_pending_per_worker: float = 1.0  # 0: the queue does not count, stay at the minimum
    scale_down_delay_seconds: float = 300.0  # between two changes down


FIELDS = {
    "target_pending_per_worker": fields.number(0, 1_000_000_000).means(
        "waiting items per worker; 0: stay at the minimum"
    ),
    "scale_down_delay_seconds": fields.seconds().means("between two changes down"),
}


def replicas(pending: int, target: float, *, low: int, high: int) -> int:
    """ceil(pending / target) between low and high; without a target, low."""
    if target <= 0:
        return low
    return min(max(sizing.ceil(pending / target), low), high)


def decide(seen: Snapshot, settings: PoolSettings) -> Decision:
    own = Options(**settings.policy_options)
    waiting = seen.claimable
    target = own.target_pending_per_worker
    low, high = settings.min_workers, settings.max_workers
    wanted = replicas(waiting, target, low=low, high=high)
    busy = sizing.busy(seen)
    per = f"at {target:g} to a worker" if target > 0 else "with no target"
    return sizing.decision(
        NAME,
        seen,
        settings,
        sizing.Want(
            workers=wanted,
            keep=busy + replicas(waiting, target, low=0, high=high),
            reason=f"{waiting} waiting {per}: {wanted} wanted, {busy} busy",
            terms={"target_pending_per_worker": target},
            down_delay_seconds=own.scale_down_delay_seconds,
        ),
    )
