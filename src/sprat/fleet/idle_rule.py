"""Whether an idle worker may leave: by its pool's policy, or as the controller that leads says."""

from __future__ import annotations

from sprat.core import model
from sprat.fleet import policy_input
from sprat.fleet.controller_lease import in_force
from sprat.scaling import policies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.model import PoolSettings, WorkerRecord
    from sprat.store.store import Store


def is_needed(store: Store, pool: str, settings: PoolSettings, worker: WorkerRecord) -> bool:
    """Whether the fleet would be too small without this worker, which has been idle for a while.
    Where a controller drains workers, none leaves unasked."""
    for group in worker.capabilities or (None,):
        led = in_force(store.backend, pool, group, settings)
        if led is not None:
            return _is_told_to_leave(led) or _is_needed(store, pool, led, worker, group)
    usual = model.PoolSettings().policy
    if settings.policy == usual and not settings.policy_options:
        low = settings.min_workers
        if not low:
            return False
        seen = store.pool(pool).observe()
        return seen.active - len(seen.suspended) <= low
    return _is_needed(store, pool, settings, worker, None)  # others keep idle workers on purpose


def _is_needed(
    store: Store, pool: str, settings: PoolSettings, worker: WorkerRecord, group: str | None
) -> bool:
    seen = policy_input.observe(store, pool, settings, group)
    return policies.is_needed(seen, settings, worker.worker_id)


def _is_told_to_leave(settings: PoolSettings) -> bool:
    """Whether the policy drains. With others, workers leave by themselves when they are idle."""
    return not hasattr(policies.find(settings.policy), "is_needed")
