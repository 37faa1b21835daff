"""A scale set under a controller: the workers of a pool, or of one group of it.

While a controller leads a scale set there is a document that says who it is and what it scales by.
The document is its lease: it expires unless it is renewed. Whoever finds it goes by it: a worker
without work does not leave by its pool's own rule, and pushes and fork servers leave scaling to the
controller.

The document of the pool itself is also the duty to bring workers for the work that needs no group.
Of all groups of a pool one has it: such work is counted once.
"""

from __future__ import annotations

from sprat.core import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.core.model import PoolSettings
    from sprat.store.backend import Backend

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
