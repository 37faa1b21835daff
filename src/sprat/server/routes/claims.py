"""The life of a worker that polls: register, claim, settle, heartbeat, leave.

Registering answers with a secret. It goes into the header `Sprat-Worker-Secret` of everything the
worker says later, so that nobody else can speak for it. A claim's token proves the claim.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec

from sprat.core import jsontext, model, payload
from sprat.core.errors import InvalidInput
from sprat.core.record import plain
from sprat.server import audit, auth, schemas, verb_checks, views
from sprat.server.roles import CONTROLLER, VIEWER, WORKER
from sprat.server.route import RequestCall, Table
from sprat.store.backend import ClaimRef, WorkerRef
from sprat.store.workers import MAX_LEASE_SECONDS

table = Table("workers")

Count = Annotated[int, msgspec.Meta(ge=0, le=1000)]
Wait = Annotated[float, msgspec.Meta(ge=0, le=30)]
WorkerShape: Any = schemas.of_record(model.WorkerRecord)


class NewWorker(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A worker of a pool. It has to send a heartbeat before its lease ends."""

    worker_id: views.Name
    capabilities: list[views.Name] = []
    lease_seconds: Annotated[float, msgspec.Meta(gt=0, le=MAX_LEASE_SECONDS)] = model.LEASE_SECONDS
    host: str | None = None
    pid: Annotated[int, msgspec.Meta(ge=0, le=2**31)] | None = None
    metadata: dict[str, Any] = {}


class RegisteredPoolWorker(msgspec.Struct, kw_only=True):
    worker: WorkerShape
    secret: str


class Claim(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How many jobs, and how long to wait for the first."""

    worker_id: views.Name
    count: Count = 1
    wait_seconds: Wait = 0.0


class Settled(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What became of one job."""

    id: views.Name
    token: views.Name
    outcome: str = model.COMPLETE
    result: Any = None
    error: str | None = None
    delay: views.Seconds = 0.0
    seconds: views.Seconds | None = None


class ExchangeRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Settle what is done and claim the next, in one step."""

    worker_id: views.Name
    settlements: Annotated[list[Settled], views.FEW] = []
    count: Count = 1
    wait_seconds: Wait = 0.0


class Settlements(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    settlements: Annotated[list[Settled], views.FEW]


class Exchanged(msgspec.Struct, kw_only=True):
    """A flag for each settlement (false: the claim was lost), and the jobs that were claimed."""

    settled: list[bool]
    jobs: list[views.ClaimedJob]


class Held(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    id: views.Name
    token: views.Name


class Beat(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Signs of life: what to remember about the worker, and which claims it believes to have."""

    metadata: dict[str, Any] = {}
    holding: Annotated[list[Held], views.FEW] = []


class Progress(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    token: views.Name
    progress: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    note: str | None = None
    checkpoint: Any = None


class StillHeld(msgspec.Struct, kw_only=True):
    held: bool


class WorkersPage(views.Page, kw_only=True):
    status: str | None = None


class WorkersView(msgspec.Struct, kw_only=True):
    workers: list[WorkerShape]
    next: str | None


class Drained(msgspec.Struct, kw_only=True):
    draining: bool


@table(
    "POST",
    "/api/v1/pools/{pool}/exchange",
    roles=(WORKER,),
    body=ExchangeRequest,
    answer=Exchanged,
    errors=(404,),
    limited=False,
    example={
        "worker_id": "w1",
        "settlements": [{"id": "018f", "token": "5d41", "outcome": "complete", "result": 42}],
        "count": 1,
        "wait_seconds": 20,
    },
)
async def exchange(call: RequestCall) -> Any:
    """Settle finished jobs and claim the next ones; one durable write a job."""
    asked = call.body
    settlements = tuple(_settlement(one) for one in asked.settlements)
    count = await call.run(auth.claims_allowed, call.state, asked.count, has_news=bool(settlements))
    return await _claim(call, count, settlements)


@table(
    "POST",
    "/api/v1/pools/{pool}/claim",
    roles=(WORKER,),
    body=Claim,
    answer=Exchanged,
    errors=(404,),
    example={"worker_id": "w1", "wait_seconds": 20},
)
async def claim(call: RequestCall) -> Any:
    """Claim jobs, waiting for work if there is none."""
    return await _claim(call, call.body.count, ())


@table(
    "POST",
    "/api/v1/pools/{pool}/settle",
    roles=(WORKER,),
    body=Settlements,
    answer=Exchanged,
    errors=(404,),
    limited=False,
    example={"settlements": [{"id": "018f", "token": "5d41", "result": {"pages": 12}}]},
)
async def settle(call: RequestCall) -> Any:
    """Settle jobs; the tokens prove the claims. Repeating it is harmless."""
    pool = payload.pool_name(call.path["pool"])
    settlements = tuple(_settlement(one) for one in call.body.settlements)
    answer = await call.run(call.backend.exchange, pool, settlements=settlements)
    call.state.long_polls.changed(call.full_pool(pool))
    return {"settled": list(answer.settled), "jobs": []}


@table(
    "POST",
    "/api/v1/pools/{pool}/jobs/{job_id}/progress",
    roles=(WORKER,),
    body=Progress,
    answer=StillHeld,
    errors=(404,),
    limited=False,
    example={"token": "5d41", "progress": 0.5, "note": "page 6 of 12"},
)
async def report_progress(call: RequestCall) -> Any:
    """Show how far a job is and keep a checkpoint for its next attempt."""
    asked = call.body
    ref = ClaimRef(item_id=verb_checks.item_id(call.path["job_id"]), token=asked.token)
    saved = None if asked.checkpoint is None else payload.encode(asked.checkpoint, "checkpoint")
    held = await call.run(
        call.backend.save,
        ref,
        checkpoint=saved,
        progress=asked.progress,
        note=payload.error_text(asked.note),
    )
    return {"held": held}


@table(
    "POST",
    "/api/v1/pools/{pool}/workers",
    roles=(WORKER,),
    body=NewWorker,
    answer=RegisteredPoolWorker,
    example={"worker_id": "w1", "capabilities": ["gpu"], "lease_seconds": 30},
)
async def register_polling_worker(call: RequestCall) -> Any:
    """Register a worker that polls; the answer has the secret that it needs from now on."""
    if call.state.is_leaving:
        raise call.state.leaving()
    return await call.run(_register, call)


@table(
    "POST",
    "/api/v1/workers/{worker_id}/heartbeat",
    roles=(WORKER,),
    body=Beat,
    answer=schemas.of_record(model.Heartbeat),
    errors=(404,),
    limited=False,
    example={"holding": [{"id": "018f", "token": "5d41"}]},
)
async def heartbeat(call: RequestCall) -> Any:
    """Extend the lease; the answer says what the worker is now and which claims it lost."""
    return await call.run(_beat, call)


@table(
    "POST",
    "/api/v1/workers/{worker_id}/drain",
    roles=(CONTROLLER,),
    answer=Drained,
    errors=(404,),
)
async def drain_worker(call: RequestCall) -> Any:
    """Let a worker finish its job and leave."""
    return {"draining": await call.run(_drain, call)}


@table(
    "GET",
    "/api/v1/pools/{pool}/workers",
    roles=(VIEWER, CONTROLLER),
    query=WorkersPage,
    answer=WorkersView,
)
async def list_pool_workers(call: RequestCall) -> Any:
    """The workers of a pool, by id."""
    asked = call.query
    if asked.status is not None and asked.status not in model.WORKER_STATUSES:
        raise InvalidInput(f"unknown status: one of {', '.join(model.WORKER_STATUSES)}")
    which = model.WorkerFilter(
        pool_id=payload.pool_name(call.path["pool"]), status=asked.status or model.LIVE
    )
    found = {one.worker_id: one for one in await call.run(call.backend.workers, which)}
    ids, following = views.after(sorted(found), asked)
    return {"workers": [plain(found[one]) for one in ids], "next": following}


# -- steps --------------------------------------------------------------------------------------


async def _claim(call: RequestCall, count: int, settlements: tuple[model.Settlement, ...]) -> Any:
    """Claim now, or when there is work, until the time is up or the worker has to leave."""
    asked = call.body
    pool = payload.pool_name(call.path["pool"])
    given = WorkerRef(worker_id=payload.worker_id(asked.worker_id))
    ref, full = await call.run(lambda: (call.speaks_for(given), call.full_worker(given.worker_id)))
    loop = asyncio.get_running_loop()
    end = loop.time() + min(asked.wait_seconds, call.state.options.max_wait_seconds)
    exchange = call.backend.exchange
    answer = await call.run(exchange, pool, ref, settlements=settlements, claim=count)
    if settlements:
        call.state.long_polls.changed(call.full_pool(pool))
    settled = list(answer.settled)
    while count and not answer.items and (left := end - loop.time()) > 0:
        lobby_ref = ref.replace(worker_id=full)
        if not await call.state.long_polls.wait(
            call.full_pool(pool), lobby_ref, left, call.caller.tenant
        ):
            break
        answer = await call.run(exchange, pool, ref, claim=count)
    return {"settled": settled, "jobs": [views.claimed(item) for item in answer.items]}


def _settlement(given: Settled) -> model.Settlement:
    if given.outcome not in model.OUTCOMES:
        raise InvalidInput(f"unknown outcome: one of {', '.join(model.OUTCOMES)}")
    return model.Settlement(
        item_id=verb_checks.item_id(given.id),
        token=payload.label(given.token, "token"),
        outcome=given.outcome,
        result=None if given.result is None else payload.encode(given.result, "result"),
        error=payload.error_text(given.error),
        delay=given.delay,
        seconds=given.seconds,
    )


def _register(call: RequestCall) -> Any:
    asked = call.body
    registration = model.WorkerRegistration(
        worker_id=payload.worker_id(asked.worker_id),
        pool_id=payload.pool_name(call.path["pool"]),
        host=payload.error_text(asked.host),
        pid=asked.pid,
        capabilities=payload.capabilities(asked.capabilities),
        lease_seconds=asked.lease_seconds,
        metadata=jsontext.loads(payload.metadata(asked.metadata)),
    )
    made = call.backend.register(registration)
    full = call.full_worker(made.worker_id)
    call.state.long_polls.worker_changed(full)
    secret = call.state.secrets.of(full, made.incarnation)
    return {"worker": plain(made), "secret": secret}


def _beat(call: RequestCall) -> Any:
    asked = call.body
    ref = call.speaks_for(WorkerRef(worker_id=payload.worker_id(call.path["worker_id"])))
    holding = [ClaimRef(item_id=one.id, token=one.token) for one in asked.holding]
    metadata = payload.metadata(asked.metadata) if asked.metadata else None
    return plain(call.backend.heartbeat(ref, metadata, holding))


def _drain(call: RequestCall) -> bool:
    worker_id = payload.worker_id(call.path["worker_id"])
    is_changed = call.backend.update_status(
        WorkerRef(worker_id=worker_id), model.TERMINATING, reason=f"drained by {call.caller.key_id}"
    )
    audit.note(call.backend, call.caller, "drain", worker_id, answer=is_changed)
    call.state.long_polls.worker_changed(call.full_worker(worker_id))
    return is_changed
