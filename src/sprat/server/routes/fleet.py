"""Workers that register themselves with an endpoint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from sprat.core import model, payload
from sprat.core.errors import InvalidInput, UnknownWorker
from sprat.server import (
    addresses,
    audit,
    endpoint_workers,
    monitor,
    outcomes,
    quotas,
    reconciliation,
    views,
)
from sprat.server.roles import CONTROLLER, VIEWER, WORKER
from sprat.server.route import RequestCall, Table
from sprat.store.backend import WorkerRef

table = Table("registration")

ENDPOINT = r"^https?://[^\s/?#@]+(/[^\s?#]*)?$"


class CompletedOperation(outcomes.OutcomeReport, kw_only=True):
    """An operation that ended while the worker could not report it."""

    operation_id: views.Name
    token: str | None = None


class EndpointRegistrationRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A worker that has started and can be reached."""

    worker_id: views.Name
    worker_type: views.PoolName
    endpoint_url: Annotated[str, msgspec.Meta(pattern=ENDPOINT, max_length=500)]
    capabilities: dict[str, Any] | list[views.Name] | None = None
    current_operation_id: views.Name | None = None
    completed_operations: Annotated[list[CompletedOperation], views.FEW] = []


class RegisteredWorker(msgspec.Struct, kw_only=True):
    worker_id: str
    worker_type: str | None
    endpoint_url: str | None
    status: str
    capabilities: dict[str, Any] | list[str]
    current_operation_id: str | None
    registered_at: float
    last_healthy_at: float | None
    health_check_failures: int


class Registered(msgspec.Struct, kw_only=True):
    """`secret` goes into the header Sprat-Worker-Secret of what the worker says later."""

    registered: bool
    worker_id: str
    worker: RegisteredWorker
    stop_operations: list[str]
    settled_operations: list[str]
    secret: str


class Deregistered(msgspec.Struct, kw_only=True):
    deregistered: bool


class RegisteredPage(views.Page, kw_only=True):
    worker_type: str | None = None
    status: str | None = None


class RegisteredWorkers(msgspec.Struct, kw_only=True):
    workers: list[RegisteredWorker]
    next: str | None


@table(
    "POST",
    "/api/v1/workers/register",
    roles=(WORKER,),
    body=EndpointRegistrationRequest,
    answer=Registered,
    example={
        "worker_id": "backtest-worker-1",
        "worker_type": "backtesting",
        "endpoint_url": "http://192.168.1.201:5003",
        "capabilities": {"cores": 4, "memory_gb": 8},
    },
)
async def register_worker(call: RequestCall) -> Any:
    """Register a worker with an endpoint, again after a restart, or after it was forgotten."""
    if call.state.is_leaving:
        raise call.state.leaving()
    return await call.run(_register, call)


@table(
    "DELETE",
    "/api/v1/workers/deregister/{worker_id}",
    roles=(WORKER, CONTROLLER),
    answer=Deregistered,
    errors=(404,),
    limited=False,
)
async def deregister_worker(call: RequestCall) -> Any:
    """Take a worker out of the registry; what it holds is handed back."""
    return await call.run(_deregister, call)


@table(
    "GET",
    "/api/v1/workers",
    roles=(VIEWER, CONTROLLER),
    query=RegisteredPage,
    answer=RegisteredWorkers,
)
async def list_workers(call: RequestCall) -> Any:
    """All workers that are there, by id, whether they poll or have an endpoint."""
    return await call.run(_list, call)


@table(
    "GET",
    "/api/v1/workers/{worker_id}",
    roles=(VIEWER, CONTROLLER, WORKER),
    answer=RegisteredWorker,
    errors=(404,),
)
async def get_worker(call: RequestCall) -> Any:
    """One worker."""
    found = await call.run(_live, call)
    if endpoint_workers.is_replaced(found):
        raise UnknownWorker(f"there is another worker at the endpoint of {found.worker_id!r}")
    return endpoint_workers.view(
        found, await call.run(endpoint_workers.health, call.backend, found.worker_id)
    )


# -- steps --------------------------------------------------------------------------------------


def _register(call: RequestCall) -> Any:
    asked, backend = call.body, call.backend
    worker_id = payload.worker_id(asked.worker_id)
    try:
        addresses.read(asked.endpoint_url)
    except addresses.Forbidden as error:
        raise InvalidInput(f"endpoint_url: {error}") from None
    current = _proven(call, worker_id)
    settled = reconciliation.settle_finished(
        backend,
        worker_id,
        [_ended(one) for one in asked.completed_operations],
        is_proven=current is not None,
    )
    made = _made(call, worker_id, current)
    call.state.endpoint_came()
    full = call.full_worker(worker_id)
    call.state.long_polls.worker_changed(full)
    return {
        "registered": True,
        "worker_id": worker_id,
        "worker": endpoint_workers.view(made, endpoint_workers.Health()),
        "stop_operations": reconciliation.to_stop(backend, worker_id, asked.current_operation_id),
        "settled_operations": settled,
        "secret": call.state.secrets.of(full, made.incarnation),
    }


def _made(
    call: RequestCall, worker_id: str, current: model.WorkerRecord | None
) -> model.WorkerRecord:
    """The registered worker. One that proves to be the same as before keeps what it holds."""
    asked = call.body
    facts = {
        "endpoint_url": asked.endpoint_url,
        "capabilities": {} if asked.capabilities is None else asked.capabilities,
        "current_operation_id": asked.current_operation_id,
    }
    payload.metadata(facts)
    names = asked.capabilities if isinstance(asked.capabilities, list) else ()

    def may_end(other: str) -> bool:
        return call.caller.is_admin or _proven(call, other) is not None

    if current is not None and _is_same(current, asked, names):
        endpoint_workers.refresh(call.backend, current, facts, may_end)
        return call.backend.worker(worker_id) or current
    if call.caller.tenant is not None:
        _must_accept(call, worker_id)
    registration = model.WorkerRegistration(
        worker_id=worker_id,
        pool_id=asked.worker_type,
        capabilities=payload.capabilities(names),
        metadata=facts,
    )
    return endpoint_workers.register(call.backend, registration, asked.endpoint_url, may_end)


def _must_accept(call: RequestCall, worker_id: str) -> None:
    """Refuse one more endpoint to a tenant that has as many as it may have."""
    others = [
        one
        for one in monitor.serving(call.backend)
        if one.worker_id != worker_id
        and one.metadata["endpoint_url"] != call.body.endpoint_url  # it would be replaced
    ]
    if len(others) >= quotas.MAX_ENDPOINTS:
        raise InvalidInput(
            f"a tenant has at most {quotas.MAX_ENDPOINTS:,} workers with an endpoint: deregister "
            f"one, or let workers poll"
        )


def _is_same(
    current: model.WorkerRecord, asked: EndpointRegistrationRequest, names: Iterable[str]
) -> bool:
    """Whether the registration repeats what is known, but for an endpoint that another took."""
    is_there = current.metadata.get("endpoint_url") == asked.endpoint_url
    return (
        current.pool_id == asked.worker_type
        and current.capabilities == tuple(names)
        and (is_there or endpoint_workers.is_replaced(current))
    )


def _proven(call: RequestCall, worker_id: str) -> model.WorkerRecord | None:
    """The worker as it is, if whoever registers proves to be its current incarnation."""
    incarnation = call.proven(WorkerRef(worker_id=worker_id))
    found = None if incarnation is None else call.backend.worker(worker_id)
    if found is None or found.status != model.ACTIVE or found.incarnation != incarnation:
        return None
    return found


def _ended(given: CompletedOperation) -> model.Settlement:
    operation_id = payload.label(given.operation_id, "operation id") or ""
    return outcomes.settlement(given, operation_id, given.token)


def _deregister(call: RequestCall) -> Any:
    worker_id = _live(call).worker_id
    ref = call.speaks_for(WorkerRef(worker_id=worker_id), CONTROLLER)
    is_itself = call.proven(ref) is not None
    if not endpoint_workers.end(call.backend, worker_id, "deregistered"):
        raise UnknownWorker(f"there is no worker {worker_id!r}")
    if not is_itself:
        audit.note(call.backend, call.caller, "deregister", worker_id)
    call.state.long_polls.worker_changed(call.full_worker(worker_id))
    return {"deregistered": True}


def _live(call: RequestCall) -> model.WorkerRecord:
    worker_id = payload.worker_id(call.path["worker_id"])
    found = call.backend.worker(worker_id)
    if found is None or found.status in model.ENDED:
        raise UnknownWorker(f"there is no worker {worker_id!r}")
    return found


def _list(call: RequestCall) -> Any:
    asked, backend = call.query, call.backend
    if asked.status is not None and asked.status not in endpoint_workers.STATUSES:
        raise InvalidInput(f"unknown status: one of {', '.join(endpoint_workers.STATUSES)}")
    pool = None if asked.worker_type is None else payload.pool_name(asked.worker_type)
    found = backend.workers(
        model.WorkerFilter(pool_id=pool, status=(model.ACTIVE, model.TERMINATING))
    )
    known = {
        one.name: endpoint_workers.read(one)
        for one in backend.documents(endpoint_workers.HEALTH, 10_000, None)
    }
    seen = {
        one.worker_id: endpoint_workers.view(
            one, known.get(one.worker_id, endpoint_workers.Health())
        )
        for one in found
        if not endpoint_workers.is_replaced(one)
    }
    fit = [i for i, one in seen.items() if asked.status in (None, one["status"])]
    ids, following = views.after(sorted(fit), asked)
    return {"workers": [seen[one] for one in ids], "next": following}
