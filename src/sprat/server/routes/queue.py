"""What a controller far away asks for, and the simplest worker."""

from __future__ import annotations

import asyncio
import math
from typing import Annotated, Any

import msgspec

from sprat.core import jsontext, model, payload
from sprat.core.errors import InvalidInput
from sprat.server import audit, keys, outcomes, verb_checks, views, work_requests
from sprat.server.http_error import not_found
from sprat.server.roles import ADMIN, CONTROLLER, VIEWER, WORKER
from sprat.server.route import RequestCall, Response, Table
from sprat.server.tenancy import TenantBackend
from sprat.store.backend import Backend, WorkerRef

table = Table("queue")

SCALE_SET = "scale_set"
LOOK_SECONDS = 1.0  # how often a waiting worker that named no pool looks at all pools
Replicas = Annotated[int, msgspec.Meta(ge=0, le=100_000)]


class Group(msgspec.Struct, kw_only=True):
    machine_group: str | None = None
    pool: str | None = None


class QueueMetrics(msgspec.Struct, kw_only=True):
    machine_group: str | None
    pending_fragments: int
    running_fragments: int
    active_workers: int
    assigned_workers: int
    oldest_pending_seconds: int | None


class ScaleSetConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a controller goes by, unless it is told otherwise where it runs."""

    min_replicas: Replicas = 0
    max_replicas: Replicas = 10
    target_pending_per_worker: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 1.0
    scale_down_delay_seconds: Annotated[int, msgspec.Meta(ge=0, le=315_360_000)] = 300
    poll_interval_seconds: Annotated[float, msgspec.Meta(gt=0, le=86400)] = 30


class WorkRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A worker that wants work; it is registered when it asks for the first time. Without a
    `pool` it gets work of any pool, and is counted in the pool that it works for."""

    worker_id: views.Name
    machine_group: str | None = None
    pool: views.PoolName | None = None
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=30)] = 0.0


class WorkGrant(msgspec.Struct, kw_only=True):
    """One piece of work. `token` goes back with the result; `secret` into later requests."""

    work_id: str
    pool: str
    payload: Any
    token: str | None
    attempt: int
    max_attempts: int
    checkpoint: Any
    secret: str


class WorkResult(outcomes.OutcomeReport, kw_only=True):
    """The end of a piece of work. `token` proves the claim; `worker_id` is not needed."""

    work_id: views.Name
    token: views.Name
    worker_id: views.Name | None = None


class Accepted(msgspec.Struct, kw_only=True):
    """False: the work was given to another worker, and nothing was changed."""

    accepted: bool


@table(
    "GET",
    "/queue/metrics",
    roles=(CONTROLLER, VIEWER),
    query=Group,
    answer=QueueMetrics,
)
async def queue_metrics(call: RequestCall) -> Any:
    """How much waits and runs, and who is there: in one machine group, or in all."""
    return await call.run(_measure, call.backend, call.query)


@table(
    "GET",
    "/scale-sets/{tenant_id}/{machine_group}/config",
    roles=(CONTROLLER, VIEWER),
    answer=ScaleSetConfig,
    errors=(404,),
)
async def get_scale_set(call: RequestCall) -> Any:
    """The central defaults of a scale set."""
    store, name = _scale_set(call)
    found = await call.run(store.document, SCALE_SET, name)
    known = {} if found is None else jsontext.loads(found.body)
    merged = {**msgspec.to_builtins(ScaleSetConfig()), **known}
    delay = math.ceil(merged["scale_down_delay_seconds"])  # an older version kept 5 as 5.0
    return {**merged, "scale_down_delay_seconds": delay}


@table(
    "PUT",
    "/scale-sets/{tenant_id}/{machine_group}/config",
    roles=(ADMIN,),
    body=ScaleSetConfig,
    answer=ScaleSetConfig,
    errors=(404,),
    example={"min_replicas": 0, "max_replicas": 50, "target_pending_per_worker": 2.0},
)
async def put_scale_set(call: RequestCall) -> Any:
    """Set the central defaults of a scale set."""
    store, name = _scale_set(call)
    limits = msgspec.to_builtins(call.body)
    if call.body.min_replicas > call.body.max_replicas:
        raise InvalidInput("min_replicas is more than max_replicas")
    await call.run(store.put, SCALE_SET, name, jsontext.dumps(limits), None, None)
    await call.run(audit.note, call.backend, call.caller, "scale_set", name, **limits)
    return limits


@table(
    "POST",
    "/work/request",
    roles=(WORKER,),
    body=WorkRequest,
    answer=WorkGrant,
    empty=True,
    errors=(404, 409),
    example={"worker_id": "pod-7f9c", "machine_group": "gpu", "wait_seconds": 20},
)
async def request_work(call: RequestCall) -> Any:
    """Ask for one piece of work: 204 when there is none. The header Sprat-Worker-Secret of the
    newest answer belongs into the worker's later requests."""
    worker = await call.run(work_requests.known_worker, call)
    full = await call.run(call.full_worker, worker.worker_id)
    worker, item = await _one_item(call, worker, full)
    secret = await call.run(call.state.secrets.of, full, worker.incarnation)
    headers = {"sprat-worker-secret": secret}
    if item is None:
        return Response(status=204, headers=headers)
    body = {
        "work_id": item.id,
        "pool": item.pool,
        "payload": item.data,
        "token": item.token,
        "attempt": item.attempts,
        "max_attempts": item.max_retries,
        "checkpoint": item.checkpoint,
        "secret": secret,
    }
    return Response(body=msgspec.json.encode(body), headers=headers)


@table(
    "POST",
    "/work/result",
    roles=(WORKER,),
    body=WorkResult,
    answer=Accepted,
    errors=(404,),
    limited=False,
    example={"work_id": "018f", "token": "5d41", "status": "completed", "result": {"rows": 12}},
)
async def report_result(call: RequestCall) -> Any:
    """Report how a piece of work ended."""
    return {"accepted": await call.run(_report, call)}


# -- steps --------------------------------------------------------------------------------------


def _measure(backend: Backend, asked: Group) -> Any:
    group = payload.label(asked.machine_group, "machine_group")
    pools = backend.pools() if asked.pool is None else [payload.pool_name(asked.pool)]
    seen = [backend.observe(pool, group, 60.0) for pool in pools]
    workers = {one.worker_id: one for snapshot in seen for one in snapshot.workers}
    if asked.pool is None:
        now = max((one.now for one in seen), default=0.0)
        idle = work_requests.without_pool(backend, group, now)
        workers.update({one.worker_id: one for one in idle})
    active = [one for one in workers.values() if one.status == model.ACTIVE]
    waits = [one.oldest_ready_seconds for one in seen if one.oldest_ready_seconds is not None]
    return {
        "machine_group": group,
        "pending_fragments": sum(one.counts.pending for one in seen),
        "running_fragments": sum(one.counts.claimed for one in seen),
        "active_workers": len(active),
        "assigned_workers": sum(one.claims > 0 for one in active),
        "oldest_pending_seconds": int(max(waits)) if waits else None,
    }


def _scale_set(call: RequestCall) -> tuple[Backend, str]:
    """The part of the store that holds a tenant's scale sets. Another tenant's do not exist."""
    tenant = call.path["tenant_id"]
    if call.caller.tenant not in (None, tenant):
        raise not_found()
    try:
        keys.check_tenant(tenant)
        name = payload.label(call.path["machine_group"], "machine_group") or ""
    except InvalidInput:
        raise not_found() from None
    return TenantBackend(call.state.backend, tenant), name


async def _one_item(
    call: RequestCall, worker: model.WorkerRecord, full: str
) -> tuple[model.WorkerRecord, model.WorkItem | None]:
    """An item of the pool that was named, or of the first that has one for this worker."""
    asked, loop = call.body, asyncio.get_running_loop()
    end = loop.time() + min(asked.wait_seconds, call.state.options.max_wait_seconds)
    while True:
        for pool in [asked.pool] if asked.pool else await call.run(call.backend.pools):
            worker, item = await call.run(work_requests.claim_from, call, worker, pool)
            if item is not None:
                return worker, item
        ref = WorkerRef(worker_id=full, incarnation=worker.incarnation)
        if (left := end - loop.time()) <= 0 or not await _waited(call, ref, left):
            return worker, None


async def _waited(call: RequestCall, ref: WorkerRef, seconds: float) -> bool:
    """Whether to look for work again; a worker that named no pool looks each second."""
    if call.body.pool:
        return await call.state.long_polls.wait(
            call.full_pool(call.body.pool), ref, seconds, call.caller.tenant
        )
    await asyncio.sleep(min(seconds, LOOK_SECONDS))
    return not call.state.is_leaving


def _report(call: RequestCall) -> bool:
    asked = call.body
    ended = outcomes.settlement(
        asked, verb_checks.item_id(asked.work_id), payload.label(asked.token, "token")
    )
    item = call.backend.item(ended.item_id)
    settled = outcomes.settle(call.backend, item, ended)
    call.state.long_polls.changed(call.full_pool(item.pool))
    return settled
