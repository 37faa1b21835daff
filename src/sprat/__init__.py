"""sprat: durable work pools that scale themselves, with no daemon and no master."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.errors import (
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
    from sprat.core.model import WorkerFilter, WorkerRecord, WorkerRegistration, WorkItem
    from sprat.local.idempotency import IdempotencyTracker
    from sprat.local.regional_pool import RegionalPool
    from sprat.local.retry import RetryConfig, retry_with_backoff
    from sprat.local.worker_pool import WorkerPool, WorkerStats
    from sprat.machines.runtime.running import run_machine
    from sprat.scaling.engine import (
        EngineConfig,
        EngineState,
        ScaleDecision,
        ScaleDirection,
        make_scale_decision,
    )
    from sprat.store.open_store import open_store
    from sprat.store.pool import WorkPool
    from sprat.store.store import Store
    from sprat.tasks.default_store import use
    from sprat.tasks.inline import inline
    from sprat.tasks.results import result
    from sprat.tasks.task import Task, task
    from sprat.worker.job import Job, current_job

__version__ = "0.1.0"

_HOMES = {
    "InvalidInput": "core.errors",
    "JobCancelled": "core.errors",
    "JobFailed": "core.errors",
    "KeyConflict": "core.errors",
    "Poison": "core.errors",
    "SpratError": "core.errors",
    "StoreUnavailable": "core.errors",
    "Throttled": "core.errors",
    "Transient": "core.errors",
    "IdempotencyTracker": "local.idempotency",
    "inline": "tasks.inline",
    "Job": "worker.job",
    "current_job": "worker.job",
    "run_machine": "machines.runtime.running",
    "WorkItem": "core.model",
    "WorkerFilter": "core.model",
    "WorkerRecord": "core.model",
    "WorkerRegistration": "core.model",
    "WorkPool": "store.pool",
    "RegionalPool": "local.regional_pool",
    "result": "tasks.results",
    "RetryConfig": "local.retry",
    "retry_with_backoff": "local.retry",
    "EngineConfig": "scaling.engine",
    "EngineState": "scaling.engine",
    "ScaleDecision": "scaling.engine",
    "ScaleDirection": "scaling.engine",
    "make_scale_decision": "scaling.engine",
    "Store": "store.store",
    "open_store": "store.open_store",
    "Task": "tasks.task",
    "task": "tasks.task",
    "use": "tasks.default_store",
    "WorkerPool": "local.worker_pool",
    "WorkerStats": "local.worker_pool",
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
