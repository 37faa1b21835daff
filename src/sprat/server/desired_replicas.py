"""How many workers a pool wants: what its policy would decide now, where others scale.

Workers that we start ourselves leave when they have been idle for a while, and some policies count
on that: they only say how many to add. Where somebody else sets the number, workers stay until they
are sent away, so those that would have left are counted off here.
"""

from __future__ import annotations

from bisect import bisect_left

from sprat.core import model
from sprat.fleet import controller_lease, policy_input
from sprat.scaling import policies
from sprat.server.http_error import not_found
from sprat.store.backend import Backend
from sprat.store.store import Store


def decision(backend: Backend, pool: str, group: str | None = None) -> model.Decision:
    """Nothing is recorded, and the policy keeps no notes. Blocks. A pool that
    does not exist is an error: 0 workers would hide a mistake in its name."""
    state = backend.pool_state(pool)
    if not state.version and pool not in backend.pools():
        raise not_found()
    return of_pool(backend, state, group)


def of_pool(backend: Backend, state: model.PoolState, group: str | None = None) -> model.Decision:
    """As `decision`, for a pool that exists. Blocks."""
    pool = state.name
    settings = controller_lease.in_force(backend, pool, group, state.settings) or state.settings
    seen = policy_input.observe(Store(backend), pool, settings, group)
    made = policies.decide(seen, settings)
    gone = leaving(seen, settings)
    reason = f"{made.reason}; {gone} have no work" if gone else made.reason
    most = settings.max_workers  # which may have been lowered since they came
    return made.replace(desired=min(made.desired - gone, most), reason=reason)


def leaving(seen: model.Snapshot, settings: model.PoolSettings) -> int:
    """How many workers would leave by themselves, if their policy leaves that to them."""
    policy = policies.find(settings.policy)
    if not hasattr(policy, "is_needed"):
        return 0
    ready = 0 if seen.paused else seen.counts.ready
    idle = [one for one in seen.workers if one.status == model.ACTIVE and not one.claims]
    spare = idle[ready:]  # the others will have work in a moment

    def is_small(gone: int) -> bool:
        away = {one.worker_id for one in spare[:gone]}
        rest = tuple(one for one in seen.workers if one.worker_id not in away)
        return bool(policy.is_needed(seen.replace(workers=rest), settings))

    return bisect_left(range(len(spare)), True, key=is_small)
