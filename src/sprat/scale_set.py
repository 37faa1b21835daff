"""A scale set under a controller: the workers of a pool, or of one group of it.

While a controller leads a scale set there is a document that says who it is and what it scales by.
The document is its lease: it expires unless it is renewed. Whoever finds it goes by it: a worker
without work does not leave by its pool's own rule, and pushes and nests leave scaling to the
controller.

The document of the pool itself is also the duty to bring workers for the work that needs no group.
Of all groups of a pool one has it: such work is counted once.
"""

from __future__ import annotations

from sprat import insight, jsontext, model
from sprat.scaling import policies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.backend import Backend
    from sprat.model import PoolSettings, WorkerRecord
    from sprat.store import Store

KIND = "controller"
# What a controller decides about a pool; all else is as in the pool's settings.
SCALING = ("policy", "policy_options", "min_workers", "max_workers")


def name_of(pool: str, group: str | None) -> str:
    return pool if group is None else f"{pool}/{group}"


def is_led(backend: Backend, pool: str) -> bool:
    """Whether a controller sees to the pool, or to a group of it."""
    return backend.document(KIND, name_of(pool, None)) is not None


def leader(backend: Backend, pool: str) -> str | None:
    """Which controller that is: its machine and process."""
    found = backend.document(KIND, name_of(pool, None))
    if found is None:
        return None
    machine, process, *_ = str(jsontext.loads(found.body)["holder"]).split("/")
    return f"{machine}, process {process}"


def in_force(
    backend: Backend, pool: str, group: str | None, settings: PoolSettings
) -> PoolSettings | None:
    """The pool's settings as the controller of this scale set has them; None: there is none."""
    found = backend.document(KIND, name_of(pool, group))
    told: dict[str, Any] = {} if found is None else jsontext.loads(found.body)
    if not told or told["group"] != group:  # another group's, which has the duty
        return None
    return settings.replace(**{name: told["settings"][name] for name in SCALING})


def is_needed(store: Store, pool: str, settings: PoolSettings, worker: WorkerRecord) -> bool:
    """Whether the fleet would be too small without this worker, which has been idle for a while.
    Where a controller says who leaves, nobody does so unasked."""
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
    seen = insight.observe(store, pool, settings, group)
    return policies.is_needed(seen, settings, worker.worker_id)


def _is_told_to_leave(settings: PoolSettings) -> bool:
    """Whether the policy drains. With others, workers leave by themselves when they are idle."""
    return not hasattr(policies.find(settings.policy), "is_needed")
