"""Jobs of a pool: pushing one, many or a stream of them; reading, cancelling, requeuing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec

from sprat.core import item_filter, jsontext, model, payload
from sprat.core.errors import InvalidInput, SpratError, UnknownItem
from sprat.server import audit, bodies, pages, views
from sprat.server.http_error import HttpError, of_error
from sprat.server.roles import PUSHER, VIEWER
from sprat.server.route import RequestCall, Response, Table
from sprat.server.schemas import Whole
from sprat.store import default_tenant_limit

table = Table("jobs")

STREAM_BATCH = 500  # lines that are stored in one step
STEP = 1000  # jobs that a filter changes in one request
MAX_LINE_BYTES = 2 * payload.MAX_BYTES  # of a stream


class NewJob(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A job to push. `data` is any JSON; the same `key` and data again is the same job."""

    data: Any
    priority: Whole = 0
    delay: views.Seconds = 0.0
    max_attempts: Whole | None = None  # 3
    max_retries: Whole | None = None  # an alias of max_attempts
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
    """Jobs by their ids, or those that fit all of the other fields, as for a list of jobs."""

    ids: Annotated[list[views.Name], views.FEW] | None = None
    status: str | None = None
    error: str | None = None
    key: str | None = None
    tenant: str | None = None
    older: views.Seconds | None = None
    newer: views.Seconds | None = None
    after: views.Name | None = None


class Changed(msgspec.Struct, kw_only=True):
    """How many were changed. Jobs are looked through a stretch at a time: `next` is the value of
    `after` for the next stretch, null at the end."""

    changed: int
    next: str | None = None


class JobsPage(views.Page, kw_only=True):
    """`status` is a word of either kind (failed or poisoned), `error` a text within the error;
    `older` and `newer` are seconds since the push."""

    status: str | None = None
    error: str | None = None
    key: str | None = None
    tenant: str | None = None
    older: views.Seconds | None = None
    newer: views.Seconds | None = None
    newest: bool = False


EXAMPLE = {"data": {"paper": "2401.00001"}, "priority": 5, "key": "2401.00001"}
_line = msgspec.json.Decoder(NewJob)


@table(
    "POST",
    "/api/v1/pools/{pool}/jobs",
    roles=(PUSHER,),
    body=NewJob,
    answer=Pushed,
    errors=(404, 409),
    example=EXAMPLE,
)
async def push_job(call: RequestCall) -> Any:
    """Push one job; it is stored durably when the answer comes."""
    ids = await _push(call, [call.body])
    return {"id": ids[0]}


@table(
    "POST",
    "/api/v1/pools/{pool}/jobs/bulk",
    roles=(PUSHER,),
    body=Bulk,
    answer=PushedMany,
    errors=(404, 409),
    example={"jobs": [EXAMPLE, {"data": 2}]},
)
async def push_jobs(call: RequestCall) -> Any:
    """Push many jobs in one step, all or none."""
    return {"ids": await _push(call, call.body.jobs)}


@table(
    "POST",
    "/api/v1/pools/{pool}/jobs/stream",
    roles=(PUSHER,),
    takes="application/x-ndjson",
    answer=Streamed,
    errors=(404, 409),
    example='{"data": 1}\n{"data": 2, "priority": 3}\n',
)
async def stream_jobs(call: RequestCall) -> Any:
    """Push a stream of any length: a job a line, as JSON. They are stored batch by batch; after an
    error, what came before it is stored, and `key` makes sending everything again harmless."""
    pushed = 0
    batch: list[NewJob] = []
    try:
        async for line in _lines(call.stream):
            batch.append(await _job(line, pushed + len(batch) + 1))
            if len(batch) == STREAM_BATCH:
                pushed += len(await _push(call, batch))
                batch = []
        pushed += len(await _push(call, batch))
    except (HttpError, SpratError) as error:
        why = error if isinstance(error, HttpError) else of_error(error)
        raise HttpError(
            why.status, why.word, f"{why}; {pushed} jobs before it are stored"
        ) from None
    return {"pushed": pushed}


@table(
    "GET",
    "/api/v1/pools/{pool}/jobs",
    roles=(PUSHER, VIEWER),
    query=JobsPage,
    answer=views.Jobs,
    errors=(404,),
)
async def list_jobs(call: RequestCall) -> Any:
    """Jobs in order of arrival, or newest first, page by page; filters are by status, error, key,
    tenant and age. With a filter, and at 8 MiB, a page ends before it has `limit` jobs."""
    asked = call.query
    which = _filter(asked, asked.status, newest=asked.newest)
    pool = payload.pool_name(call.path["pool"])
    cursor = payload.label(asked.after, "cursor")
    if item_filter.is_plain(which):
        read = pages.items(call.backend, pool, which.status)
    else:
        read = pages.finds(call.backend, pool, which)
    texts, following = await call.run(pages.page, read, asked.limit, cursor, views.job)
    ends = jsontext.dumps({"next": following}).encode()
    return Response(body=b'{"jobs":' + pages.listed(texts) + b"," + ends[1:])


@table(
    "GET",
    "/api/v1/pools/{pool}/jobs/{job_id}",
    roles=(PUSHER, VIEWER),
    answer=views.JobView,
    errors=(404,),
)
async def get_job(call: RequestCall) -> Any:
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
    errors=(404,),
    example={"ids": ["018f6a0e4b7d3c0f9a8b7c6d5e4f"]},
)
async def cancel_jobs(call: RequestCall) -> Any:
    """End jobs that are not finished; a running one loses its claim. By ids, or all that fit a
    filter: those that wait, unless `status` names others."""
    return await call.run(_change, call, call.backend.cancel, "cancel", model.PENDING)


@table(
    "POST",
    "/api/v1/pools/{pool}/requeue",
    roles=(PUSHER,),
    body=Chosen,
    answer=Changed,
    errors=(404,),
    example={"ids": ["018f6a0e4b7d3c0f9a8b7c6d5e4f"]},
)
async def requeue_jobs(call: RequestCall) -> Any:
    """Make poisoned, cancelled and backlog jobs pending again. By ids, or all that fit a filter:
    those that failed, unless `status` names others."""
    return await call.run(_change, call, call.backend.requeue, "requeue", model.POISONED)


# -- steps --------------------------------------------------------------------------------------


def _change(call: RequestCall, verb: Any, act: str, status: str) -> Any:
    pool = payload.pool_name(call.path["pool"])
    ids, following = _chosen(call, pool, status)
    changed = verb(pool, ids)
    audit.note(call.backend, call.caller, act, pool, ids=ids[:100], changed=changed)
    call.state.added(call.full_pool(pool))
    return {"changed": changed, "next": following}


def _chosen(call: RequestCall, pool: str, status: str) -> tuple[tuple[str, ...], str | None]:
    """The ids of the jobs that are meant, and where to go on."""
    asked = call.body
    which = _filter(asked, asked.status)
    if (asked.ids is None) == (which == model.ItemFilter()):
        raise InvalidInput("name jobs by their ids, or by a filter: one of the two")
    if asked.ids is not None:
        return tuple(dict.fromkeys(payload.label(one, "job id") or "" for one in asked.ids)), None
    which = _filter(asked, asked.status or status)
    read = pages.finds(call.backend, pool, which)
    return pages.ids(read, STEP, payload.label(asked.after, "cursor"))


def _filter(asked: Any, status: str | None, *, newest: bool = False) -> model.ItemFilter:
    return item_filter.which(
        status,
        error=asked.error,
        key=asked.key,
        tenant=asked.tenant,
        older_seconds=asked.older,
        newer_seconds=asked.newer,
        newest=newest,
    )


async def _push(call: RequestCall, jobs: list[NewJob]) -> list[str]:
    if not jobs:
        return []
    return list(await call.run(_store, call, jobs))


def _store(call: RequestCall, jobs: list[NewJob]) -> list[str]:
    pool = payload.pool_name(call.path["pool"])
    items = [_item(one) for one in jobs]
    default_tenant_limit.before_push(call.backend, pool, items, call.caller.tenant)
    ids = call.backend.push(pool, items)
    call.state.added(call.full_pool(pool))
    return ids


def _item(given: NewJob) -> model.NewItem:
    return payload.new_item(
        given.data,
        max_attempts=given.max_attempts,
        max_retries=given.max_retries,
        priority=given.priority,
        delay=given.delay,
        tenant=given.tenant,
        group=given.group,
        key=given.key,
        backlog=given.backlog,
    )


async def _lines(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = bytearray()
    async for part in stream:
        ended, newline, begun = part.rpartition(b"\n")
        rest += ended
        if newline:
            for line in filter(bytes.strip, bytes(rest).strip().split(b"\n")):
                yield line
            rest.clear()
        rest += begun
        if len(rest) > MAX_LINE_BYTES:
            raise bodies.too_large(MAX_LINE_BYTES)
    if rest.strip():
        yield bytes(rest)


async def _job(line: bytes, number: int) -> NewJob:
    try:
        if len(line) > MAX_LINE_BYTES:
            raise bodies.too_large(MAX_LINE_BYTES)
        await bodies.check_depth(line)
        return _line.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpError(422, "invalid_input", f"job {number} of the stream: {error}") from None
