"""Workers that serve: each has an endpoint where it can be reached, and says so by registering.

They are workers of the store like all others; what is special about them is kept as metadata
(the endpoint) and as small documents: `endpoint` says which worker has an address, and `health`
what a monitor found out (see the fields of Health). Without a monitor nobody is unhealthy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from sprat.core import jsontext, model
from sprat.core.record import Record
from sprat.server import schemas
from sprat.store.backend import Backend, WorkerRef
from sprat.store.workers import MAX_LEASE_SECONDS

ENDPOINT = "endpoint"
HEALTH = "health"
REPLACED = "replaced_by"  # in the metadata of a worker: the one that took its endpoint
REPLACED_SECONDS = 60.0  # without a sign of life, and a replaced worker is ended

AVAILABLE = "available"
BUSY = "busy"
UNAVAILABLE = "temporarily_unavailable"
STATUSES = (AVAILABLE, BUSY, UNAVAILABLE)

MayEnd = Callable[[str], bool]  # whether the caller may end the worker of this id


class Health(Record):
    """What probes of a worker's endpoint showed. `last_healthy_at` is by the store's clock."""

    failures: int = 0
    is_unavailable: bool = False
    last_healthy_at: float | None = None
    worker_status: str | None = None  # idle or busy, as the worker itself said last
    current_operation: str | None = None


_health = msgspec.json.Decoder(schemas.of_record(Health))


def register(
    backend: Backend, registration: model.WorkerRegistration, endpoint: str, may_end: MayEnd
) -> model.WorkerRecord:
    """Register a worker at its endpoint. Another worker that had the endpoint is replaced, and
    what was known about this one's health is forgotten: it has just shown that it is there."""
    _take(backend, endpoint, registration.worker_id, may_end)
    made = backend.register(registration.replace(lease_seconds=MAX_LEASE_SECONDS))
    backend.put(HEALTH, made.worker_id, None, None, None)
    return made


def _take(backend: Backend, endpoint: str, worker_id: str, may_end: MayEnd) -> None:
    """Make the endpoint this worker's. The one that had it ends if the caller `may_end` it.
    Otherwise it only loses the endpoint: it may be alive, and an attacker be the newcomer."""
    before = backend.document(ENDPOINT, endpoint)
    there = None if before is None else jsontext.loads(before.body)
    if there == worker_id:
        return
    old = None if there is None else backend.worker(there)
    if old is not None and old.metadata.get("endpoint_url") == endpoint:
        if may_end(old.worker_id):
            end(backend, old.worker_id, f"replaced by {worker_id} at {endpoint}")
        elif old.status not in model.ENDED:
            ref = WorkerRef(worker_id=old.worker_id, incarnation=old.incarnation)
            facts = {"endpoint_url": None, REPLACED: worker_id}
            backend.heartbeat(ref, jsontext.dumps(facts), ())
    backend.put(ENDPOINT, endpoint, jsontext.dumps(worker_id), None, None)


def is_replaced(worker: model.WorkerRecord) -> bool:
    return bool(worker.metadata.get(REPLACED))


def end_replaced(backend: Backend) -> None:
    """End the workers of all tenants that lost their endpoint and have been silent since."""
    which = model.WorkerFilter(status=(model.ACTIVE,), stale_threshold_seconds=REPLACED_SECONDS)
    for worker in filter(is_replaced, backend.workers(which)):
        end(backend, worker.worker_id, f"replaced by {worker.metadata[REPLACED]}, and silent since")


def refresh(
    backend: Backend, worker: model.WorkerRecord, facts: dict[str, Any], may_end: MayEnd
) -> None:
    """The same incarnation registers again: it keeps what it holds."""
    _take(backend, facts["endpoint_url"], worker.worker_id, may_end)
    facts = {**facts, REPLACED: None} if is_replaced(worker) else facts
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
    return Health() if document is None else read(document)


def read(document: model.Document) -> Health:
    """A worker's health as it was kept. One that cannot be read counts as none: the next probe
    writes it anew."""
    try:
        return Health.of(msgspec.structs.astuple(_health.decode(document.body)))
    except msgspec.DecodeError:
        return Health()


def status(worker: model.WorkerRecord, known: Health) -> str:
    """A worker's state in the words of those who dispatch to it."""
    if known.is_unavailable:
        return UNAVAILABLE
    is_busy = known.worker_status == "busy"
    if known.worker_status is None:  # not probed since it registered: what it said then
        is_busy = worker.metadata.get("current_operation_id") is not None
    return BUSY if is_busy or worker.claims > 0 else AVAILABLE


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
