"""Workers that serve: each has an endpoint where it can be reached, and says so by registering.

They are workers of the store like all others; what is special about them is kept as metadata
(the endpoint) and as small documents: `endpoint` says which worker has an address, and `health`
what a monitor found out (see the fields of Health). Without a monitor nobody is unhealthy.
"""

from __future__ import annotations

from typing import Any

from sprat import jsontext, model
from sprat.backend import Backend, WorkerRef
from sprat.record import Record
from sprat.registry import MAX_LEASE_SECONDS

ENDPOINT = "endpoint"
HEALTH = "health"

AVAILABLE = "available"
BUSY = "busy"
UNAVAILABLE = "temporarily_unavailable"
STATUSES = (AVAILABLE, BUSY, UNAVAILABLE)


class Health(Record):
    """What probes of a worker's endpoint showed. `last_healthy_at` is by the store's clock."""

    failures: int = 0
    is_unavailable: bool = False
    last_healthy_at: float | None = None
    worker_status: str | None = None  # idle or busy, as the worker itself said last
    current_operation: str | None = None


def register(
    backend: Backend, registration: model.WorkerRegistration, endpoint: str
) -> model.WorkerRecord:
    """Register a worker at its endpoint. Another worker that had the endpoint is replaced, and
    what was known about this one's health is forgotten: it has just shown that it is there."""
    before = backend.document(ENDPOINT, endpoint)
    there = None if before is None else jsontext.loads(before.body)
    if there is not None and there != registration.worker_id:
        end(backend, there, f"replaced by {registration.worker_id} at {endpoint}")
    made = backend.register(registration.replace(lease_seconds=MAX_LEASE_SECONDS))
    backend.put(ENDPOINT, endpoint, jsontext.dumps(made.worker_id), None, None)
    backend.put(HEALTH, made.worker_id, None, None, None)
    return made


def refresh(backend: Backend, worker: model.WorkerRecord, facts: dict[str, Any]) -> None:
    """The same incarnation registers again: it keeps what it holds."""
    ref = WorkerRef(worker_id=worker.worker_id, incarnation=worker.incarnation)
    if health(backend, worker.worker_id).is_unavailable:
        facts = {**facts, model.SUSPENDED: False}
    backend.heartbeat(ref, jsontext.dumps(facts), ())
    backend.put(HEALTH, worker.worker_id, None, None, None)


def end(backend: Backend, worker_id: str, why: str) -> bool:
    """Take a worker out of the registry; what it held is handed back."""
    found = backend.worker(worker_id)
    if found is None or found.status in model.ENDED:
        return False
    ref = WorkerRef(worker_id=worker_id, incarnation=found.incarnation)
    backend.put(HEALTH, worker_id, None, None, None)
    return backend.update_status(ref, model.TERMINATED, reason=why)


def health(backend: Backend, worker_id: str) -> Health:
    document = backend.document(HEALTH, worker_id)
    return Health() if document is None else Health(**jsontext.loads(document.body))


def status(worker: model.WorkerRecord, known: Health) -> str:
    """A worker's state in the words of those who dispatch to it."""
    if known.is_unavailable:
        return UNAVAILABLE
    said = known.worker_status == "busy"
    if known.worker_status is None:  # not probed since it registered: what it said then
        said = worker.metadata.get("current_operation_id") is not None
    return BUSY if said or worker.claims > 0 else AVAILABLE


def _operation(worker: model.WorkerRecord, known: Health) -> str | None:
    if known.worker_status is not None:
        return known.current_operation
    return worker.metadata.get("current_operation_id")


def view(worker: model.WorkerRecord, known: Health) -> dict[str, Any]:
    """A worker as the registration API shows it."""
    facts = worker.metadata
    return {
        "worker_id": worker.worker_id,
        "worker_type": worker.pool_id,
        "endpoint_url": facts.get("endpoint_url"),
        "status": status(worker, known),
        "capabilities": facts.get("capabilities", list(worker.capabilities)),
        "current_operation_id": worker.current_task_id or _operation(worker, known),
        "registered_at": worker.started_at,
        "last_healthy_at": known.last_healthy_at or worker.last_heartbeat,
        "health_check_failures": known.failures,
    }
