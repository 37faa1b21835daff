"""Choosing a worker that has an endpoint, and handing it an operation."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from sprat.core import jsontext, payload
from sprat.server import endpoint_workers, outbound, round_robin, views
from sprat.server.addresses import Forbidden
from sprat.server.http_error import HttpError
from sprat.server.outbound import Reached
from sprat.server.roles import CONTROLLER, PUSHER
from sprat.server.route import RequestCall, Table
from sprat.server.routes.fleet import RegisteredWorker

table = Table("dispatch")

TRIES = 3  # workers that are asked before the caller is told to come back
PATH = r"^/[A-Za-z0-9._~/-]{0,200}$"


class Wanted(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    worker_type: views.PoolName


class Operation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What to send to a worker: `body` as JSON, by POST to `path` of its endpoint."""

    worker_type: views.PoolName
    path: Annotated[str, msgspec.Meta(pattern=PATH)] = "/"
    body: Any = None


class Dispatched(msgspec.Struct, kw_only=True):
    """Who took it, and what it answered."""

    worker_id: str
    status: int
    answer: dict[str, Any]


@table(
    "POST",
    "/api/v1/workers/select",
    roles=(PUSHER, CONTROLLER),
    body=Wanted,
    answer=RegisteredWorker,
    errors=(404,),
    example={"worker_type": "backtesting"},
)
async def select_worker(call: RequestCall) -> Any:
    """The available worker that was chosen longest ago."""
    chosen = await call.run(round_robin.choose, call.backend, call.body.worker_type)
    worker = None if chosen is None else await call.run(call.backend.worker, chosen)
    if worker is None:
        raise _nobody(call.body.worker_type)
    return endpoint_workers.view(
        worker, await call.run(endpoint_workers.health, call.backend, worker.worker_id)
    )


@table(
    "POST",
    "/api/v1/workers/dispatch",
    roles=(PUSHER,),
    body=Operation,
    answer=Dispatched,
    errors=(404,),
    example={
        "worker_type": "backtesting",
        "path": "/backtests/start",
        "body": {"symbol": "EURUSD"},
    },
)
async def dispatch_operation(call: RequestCall) -> Any:
    """Hand an operation to the next available worker. One that answers 503 is busy: the next is
    asked, three at most. Workers that poll need none of this: push a job."""
    asked = call.body
    payload.encode(asked.body, "body")
    tried: frozenset[str] = frozenset()
    for _ in range(TRIES):
        chosen = await call.run(round_robin.choose, call.backend, asked.worker_type, tried)
        if chosen is None:
            break
        tried |= {chosen}
        reached = await _send(call, chosen)
        if reached is not None and reached.status != 503:
            return {"worker_id": chosen, "status": reached.status, "answer": reached.content}
    raise _nobody(asked.worker_type, len(tried))


async def _send(call: RequestCall, worker_id: str) -> Reached | None:
    worker = await call.run(call.backend.worker, worker_id)
    state, asked = call.state, call.body
    endpoint = "" if worker is None else str(worker.metadata.get("endpoint_url"))
    try:
        target = await call.run(state.hosts.target, endpoint, asked.path)
    except Forbidden:
        return None
    seconds = state.options.lifecycle.health_check_timeout
    return await outbound.ask(target, seconds=seconds, body=jsontext.dumps(asked.body).encode())


def _nobody(worker_type: str, tried: int = 0) -> HttpError:
    why = f"{tried} were asked and busy or out of reach" if tried else "none is available"
    return HttpError(
        503,
        "no_worker",
        f"no worker of type {worker_type} can take it ({why}): try again soon, start more of "
        f"them, or push a job and let it wait",
        retry_after=5.0,
    )
