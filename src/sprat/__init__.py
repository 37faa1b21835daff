"""sprat: durable work pools that scale themselves, with no daemon and no master."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.errors import InvalidInput, KeyConflict, SpratError, StoreUnavailable
    from sprat.model import WorkerFilter, WorkerRecord, WorkerRegistration, WorkItem
    from sprat.pool import WorkPool
    from sprat.store import Store, open_store

__version__ = "0.1.0"

_HOMES = {
    "InvalidInput": "errors",
    "KeyConflict": "errors",
    "SpratError": "errors",
    "StoreUnavailable": "errors",
    "WorkItem": "model",
    "WorkPool": "pool",
    "WorkerFilter": "model",
    "WorkerRecord": "model",
    "WorkerRegistration": "model",
    "Store": "store",
    "open_store": "store",
}
__all__ = [
    "InvalidInput",
    "KeyConflict",
    "SpratError",
    "Store",
    "StoreUnavailable",
    "WorkItem",
    "WorkPool",
    "WorkerFilter",
    "WorkerRecord",
    "WorkerRegistration",
    "open_store",
]


def __getattr__(name: str) -> object:
    """Import each public name on first use: `import sprat` alone costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'sprat' has no attribute {name!r}")
    value = getattr(__import__(f"sprat.{_HOMES[name]}", fromlist=[name]), name)
    globals()[name] = value
    return value
