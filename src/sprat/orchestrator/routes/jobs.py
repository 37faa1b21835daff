"""Jobs of a pool: pushing one, many or a stream of them; reading, cancelling, requeuing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from sprat import model, payload
from sprat.errors import InvalidInput, SpratError, UnknownItem
from sprat.orchestrator import audit, bodies, views
from sprat.orchestrator.refusal import Refusal, of_error
from sprat.orchestrator.roles import PUSHER, VIEWER
from sprat.orchestrator.route import Call, Table
from sprat.orchestrator.shape import Whole

table = Table("jobs")

STREAM_BATCH = 500  # lines that are stored in one step
MAX_LINE_BYTES = 2 * payload.MAX_BYTES  # of a stream


class NewJob(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A job to push. `data` is any JSON; the same `key` and data again is the same job."""

    data: Any
    priority: Whole = 0
    delay: views.Seconds = 0.0
    max_retries: Whole = model.MAX_RETRIES
    tenant: str | None = None
    group: str | None = None
    key: str | None = None
    backlog: bool = False


class Bulk(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Jobs that are stored all or none."""

    jobs: list[NewJob]


class Pushed(msgspec.Struct, kw_only=True):
    id: str


class PushedMany(msgspec.Struct, kw_only=True):
    ids: list[str]


class Streamed(msgspec.Struct, kw_only=True):
    pushed: int


class Chosen(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    ids: list[views.Name]


class Changed(msgspec.Struct, kw_only=True):
    changed: int


class JobsPage(views.Page, kw_only=True):
    status: str | None = None


EXAMPLE = {"data": {"paper": "2401.00001"}, "priority": 5, "key": "2401.00001"}
_line = msgspec.json.Decoder(NewJob)


@table(
    "POST",
    "/api/v1/pools/{pool}/jobs",
    roles=(PUSHER,),
    body=NewJob,
    answer=Pushed,
    refusals=(404, 409),
    example=EXAMPLE,
)
async def push_job(call: Call) -> Any:
    """Push one job; it is stored durably when the answer comes."""
    ids = await _push(call, [call.body])
    return {"id": ids[0]}


@table(
    "POST",
    "/api/v1/pools/{pool}/jobs/bulk",
    roles=(PUSHER,),
    body=Bulk,
    answer=PushedMany,
    refusals=(404, 409),
    example={"jobs": [EXAMPLE, {"data": 2}]},
)
async def push_jobs(call: Call) -> Any:
    """Push many jobs in one step, all or none."""
    return {"ids": await _push(call, call.body.jobs)}


@table(
    "POST",
    "/api/v1/pools/{pool}/jobs/stream",
    roles=(PUSHER,),
    takes="application/x-ndjson",
    answer=Streamed,
    refusals=(404, 409),
    example='{"data": 1}\n{"data": 2, "priority": 3}\n',
)
async def stream_jobs(call: Call) -> Any:
    """Push a stream of any length: a job a line, as JSON. They are stored batch by batch; after an
    error, what came before it is stored, and `key` makes sending everything again harmless."""
    pushed = 0
    batch: list[NewJob] = []
    try:
        async for line in _lines(call.stream):
            batch.append(_job(line, pushed + len(batch) + 1))
            if len(batch) == STREAM_BATCH:
                pushed += len(await _push(call, batch))
                batch = []
        pushed += len(await _push(call, batch))
    except (Refusal, SpratError) as error:
        why = error if isinstance(error, Refusal) else of_error(error)
        raise Refusal(why.status, why.word, f"{why}; {pushed} jobs before it are stored") from None
    return {"pushed": pushed}


@table(
    "GET",
    "/api/v1/pools/{pool}/jobs",
    roles=(PUSHER, VIEWER),
    query=JobsPage,
    answer=views.Jobs,
    refusals=(404,),
)
async def list_jobs(call: Call) -> Any:
    """Jobs in order of arrival, page by page."""
    asked = call.query
    if asked.status is not None and asked.status not in model.ITEM_STATUSES:
        raise InvalidInput(f"unknown status: one of {', '.join(model.ITEM_STATUSES)}")
    pool = payload.pool_name(call.path["pool"])
    cursor = payload.label(asked.after, "cursor")
    found = await call.run(call.backend.items, pool, asked.status, asked.limit + 1, cursor)
    shown, more = views.cut(found, asked.limit)
    return {"jobs": [views.job(item) for item in shown], "next": shown[-1].id if more else None}


@table(
    "GET",
    "/api/v1/pools/{pool}/jobs/{job_id}",
    roles=(PUSHER, VIEWER),
    answer=views.Job,
    refusals=(404,),
)
async def get_job(call: Call) -> Any:
    """One job with its result or its error."""
    found = await call.run(call.backend.item, payload.label(call.path["job_id"], "job id"))
    if found.pool != call.path["pool"]:
        raise UnknownItem(f"the store has no item {found.id!r}")
    return views.job(found)


@table(
    "POST",
    "/api/v1/pools/{pool}/cancel",
    roles=(PUSHER,),
    body=Chosen,
    answer=Changed,
    refusals=(404,),
    example={"ids": ["018f6a0e4b7d3c0f9a8b7c6d5e4f"]},
)
async def cancel_jobs(call: Call) -> Any:
    """End jobs that are not finished; a running one loses its claim."""
    return await call.run(_change, call, call.backend.cancel, "cancel")


@table(
    "POST",
    "/api/v1/pools/{pool}/requeue",
    roles=(PUSHER,),
    body=Chosen,
    answer=Changed,
    refusals=(404,),
    example={"ids": ["018f6a0e4b7d3c0f9a8b7c6d5e4f"]},
)
async def requeue_jobs(call: Call) -> Any:
    """Make poisoned, cancelled and backlog jobs pending again."""
    return await call.run(_change, call, call.backend.requeue, "requeue")


# -- steps --------------------------------------------------------------------------------------


def _change(call: Call, verb: Any, act: str) -> Any:
    pool = payload.pool_name(call.path["pool"])
    ids = tuple(payload.label(one, "job id") for one in call.body.ids)
    changed = verb(pool, ids)
    audit.note(call.backend, call.caller, act, pool, ids=ids[:100], changed=changed)
    call.state.added(call.full_pool(pool))
    return {"changed": changed}


async def _push(call: Call, jobs: list[NewJob]) -> list[str]:
    if not jobs:
        return []
    return list(await call.run(_store, call, jobs))


def _store(call: Call, jobs: list[NewJob]) -> list[str]:
    pool = payload.pool_name(call.path["pool"])
    ids = call.backend.push(pool, [_item(one) for one in jobs])
    call.state.added(call.full_pool(pool))
    return ids


def _item(given: NewJob) -> model.NewItem:
    return payload.new_item(
        given.data,
        max_retries=given.max_retries,
        priority=given.priority,
        delay=given.delay,
        tenant=given.tenant,
        group=given.group,
        key=given.key,
        backlog=given.backlog,
    )


async def _lines(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for part in stream:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
        if len(rest) > MAX_LINE_BYTES:
            raise bodies.too_large(MAX_LINE_BYTES)
    if rest.strip():
        yield rest


def _job(line: bytes, number: int) -> NewJob:
    try:
        if len(line) > MAX_LINE_BYTES:
            raise bodies.too_large(MAX_LINE_BYTES)
        bodies.check_depth(line)
        return _line.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(422, "invalid_input", f"job {number} of the stream: {error}") from None
