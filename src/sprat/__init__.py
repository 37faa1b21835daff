"""sprat: durable work pools that scale themselves, with no daemon and no master."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.errors import (
        InvalidInput,
        JobCancelled,
        JobFailed,
        KeyConflict,
        Poison,
        SpratError,
        StoreUnavailable,
        Throttled,
        Transient,
    )
    from sprat.idempotency import IdempotencyTracker
    from sprat.inlining import inline
    from sprat.job import Job, current_job
    from sprat.machine_room.running import run_machine
    from sprat.model import WorkerFilter, WorkerRecord, WorkerRegistration, WorkItem
    from sprat.pool import WorkPool
    from sprat.regional_pool import RegionalPool
    from sprat.results import result
    from sprat.retrying import RetryConfig, retry_with_backoff
    from sprat.scaling.engine import (
        EngineConfig,
        EngineState,
        ScaleDecision,
        ScaleDirection,
        make_scale_decision,
    )
    from sprat.store import Store, open_store
    from sprat.tasks import Task, task
    from sprat.using import use
    from sprat.worker_pool import WorkerPool, WorkerStats

__version__ = "0.1.0"

_HOMES = {
    "InvalidInput": "errors",
    "JobCancelled": "errors",
    "JobFailed": "errors",
    "KeyConflict": "errors",
    "Poison": "errors",
    "SpratError": "errors",
    "StoreUnavailable": "errors",
    "Throttled": "errors",
    "Transient": "errors",
    "IdempotencyTracker": "idempotency",
    "inline": "inlining",
    "Job": "job",
    "current_job": "job",
    "run_machine": "machine_room.running",
    "WorkItem": "model",
    "WorkerFilter": "model",
    "WorkerRecord": "model",
    "WorkerRegistration": "model",
    "WorkPool": "pool",
    "RegionalPool": "regional_pool",
    "result": "results",
    "RetryConfig": "retrying",
    "retry_with_backoff": "retrying",
    "EngineConfig": "scaling.engine",
    "EngineState": "scaling.engine",
    "ScaleDecision": "scaling.engine",
    "ScaleDirection": "scaling.engine",
    "make_scale_decision": "scaling.engine",
    "Store": "store",
    "open_store": "store",
    "Task": "tasks",
    "task": "tasks",
    "use": "using",
    "WorkerPool": "worker_pool",
    "WorkerStats": "worker_pool",
}
__all__ = [
    "EngineConfig",
    "EngineState",
    "IdempotencyTracker",
    "InvalidInput",
    "Job",
    "JobCancelled",
    "JobFailed",
    "KeyConflict",
    "Poison",
    "RegionalPool",
    "RetryConfig",
    "ScaleDecision",
    "ScaleDirection",
    "SpratError",
    "Store",
    "StoreUnavailable",
    "Task",
    "Throttled",
    "Transient",
    "WorkItem",
    "WorkPool",
    "WorkerFilter",
    "WorkerPool",
    "WorkerRecord",
    "WorkerRegistration",
    "WorkerStats",
    "current_job",
    "inline",
    "make_scale_decision",
    "open_store",
    "result",
    "retry_with_backoff",
    "run_machine",
    "task",
    "use",
]


def __getattr__(name: str) -> object:
    """Import each public name on first use: `import sprat` alone costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'sprat' has no attribute {name!r}")
    value = getattr(__import__(f"sprat.{_HOMES[name]}", fromlist=[name]), name)
    globals()[name] = value
    return value
