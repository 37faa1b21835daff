"""Pools: what is in them, how they are set, why they scaled; pausing and resuming."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from sprat.config import settings
from sprat.core import jsontext, model, payload
from sprat.core.errors import InvalidInput
from sprat.core.record import plain
from sprat.server import audit, desired_replicas, schemas, views
from sprat.server.http_error import HttpError, not_found
from sprat.server.roles import ADMIN, CONTROLLER, ROLES, VIEWER
from sprat.server.route import RequestCall, Table
from sprat.store import pool_deletion

table = Table("pools")

MOST_DECISIONS = 10_000  # that are looked through for a page


class Pools(msgspec.Struct, kw_only=True):
    pools: list[str]
    next: str | None


class PoolView(msgspec.Struct, kw_only=True):
    """A pool at one moment."""

    name: str
    paused: bool
    paused_seconds: float | None
    pause_reason: str | None
    parked: dict[str, int]
    version: int
    settings: dict[str, Any]
    counts: schemas.of_record(model.Counts)  # type: ignore[valid-type]  # made at run time
    workers: dict[str, int]
    oldest_ready_seconds: float | None


class Deleted(msgspec.Struct, kw_only=True):
    deleted: bool


class SettingsView(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Settings to change, by name; `if_version` refuses if somebody changed them since."""

    settings: dict[str, Any]
    if_version: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None


class Version(msgspec.Struct, kw_only=True):
    version: int


class Pause(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    seconds: views.Seconds | None = None


class Paused(msgspec.Struct, kw_only=True):
    paused: bool


class TimeWindow(msgspec.Struct, kw_only=True):
    seconds: views.Seconds = 600.0


class DecisionsPage(msgspec.Struct, kw_only=True):
    group: str | None = None
    limit: views.Limit = 20
    before: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None


class OfGroup(msgspec.Struct, kw_only=True):
    group: str | None = None


class Desired(msgspec.Struct, kw_only=True):
    """How many workers a pool should have, how many it has, and why."""

    pool: str
    group: str | None
    desired: int
    current: int
    policy: str
    reason: str


Decisions = msgspec.defstruct(
    "Decisions",
    [
        ("decisions", list[schemas.of_record(model.RecordedDecision)]),  # type: ignore[misc]
        ("next", int | None),
    ],
)
History = msgspec.defstruct(
    "History",
    [("buckets", list[schemas.of_record(model.StatsBucket)])],  # type: ignore[misc]
)


def _pool(call: RequestCall) -> str:
    return payload.pool_name(call.path["pool"])


@table("GET", "/api/v1/pools", roles=ROLES, query=views.Page, answer=Pools)
async def list_pools(call: RequestCall) -> Any:
    """The names of all pools."""
    names, following = views.after(await call.run(call.backend.pools), call.query)
    return {"pools": names, "next": following}


@table("GET", "/api/v1/pools/{pool}", roles=(VIEWER, CONTROLLER), answer=PoolView, errors=(404,))
async def get_pool(call: RequestCall) -> Any:
    """One pool: settings, counts, workers."""
    return await call.run(_look, call.backend, _pool(call))


def _look(backend: Any, name: str) -> Any:
    state = backend.pool_state(name)
    seen = backend.observe(name, None, 600.0)
    fleet = dict.fromkeys(model.LIVE, 0)
    for worker in seen.workers:
        fleet[worker.status] += 1
    return {
        "name": name,
        "paused": state.paused,
        "paused_seconds": state.paused_seconds,
        "pause_reason": state.pause_reason,
        "parked": dict(seen.parked),
        "version": state.version,
        "settings": plain(state.settings),
        "counts": plain(seen.counts),
        "workers": {**fleet, "idle": seen.idle},
        "oldest_ready_seconds": seen.oldest_ready_seconds,
    }


@table("DELETE", "/api/v1/pools/{pool}", roles=(ADMIN,), answer=Deleted, errors=(404, 409))
async def delete_pool(call: RequestCall) -> Any:
    """Delete a pool with its settings, finished jobs and statistics. Refused (409) while it has
    unfinished jobs or live workers."""
    return {"deleted": await call.run(_delete, call)}


def _delete(call: RequestCall) -> bool:
    pool = _pool(call)
    if not pool_deletion.delete(call.backend, pool):
        raise not_found()
    audit.note(call.backend, call.caller, "delete_pool", pool)
    return True


@table(
    "PATCH",
    "/api/v1/pools/{pool}/settings",
    roles=(ADMIN,),
    body=SettingsView,
    answer=Version,
    errors=(409,),
    example={"settings": {"max_workers": 20}},
)
async def change_settings(call: RequestCall) -> Any:
    """Change some of a pool's settings; the others stay."""
    return {"version": await call.run(_configure, call)}


def _configure(call: RequestCall) -> int:
    pool, change = _pool(call), call.body
    for _ in range(10):
        state = call.backend.pool_state(pool)
        after = settings.changed(state.settings, change.settings)
        expected = state.version if change.if_version is None else change.if_version
        if call.backend.configure(pool, jsontext.dumps(after.as_dict()), expected):
            audit.note(call.backend, call.caller, "configure", pool, names=list(change.settings))
            call.state.long_polls.changed(call.full_pool(pool))
            return expected + 1
        if change.if_version is not None:
            break
    raise HttpError(409, "changed", "somebody else changed the settings: read them again")


@table(
    "POST",
    "/api/v1/pools/{pool}/pause",
    roles=(ADMIN,),
    body=Pause,
    answer=Paused,
    example={"seconds": 600},
)
async def pause_pool(call: RequestCall) -> Any:
    """Hand out no jobs for so long, or until resumed; running ones go on."""
    await call.run(_pause, call, call.body.seconds)
    return {"paused": True}


@table("POST", "/api/v1/pools/{pool}/resume", roles=(ADMIN,), answer=Paused)
async def resume_pool(call: RequestCall) -> Any:
    """Hand out jobs again."""
    await call.run(_pause, call, 0.0)
    return {"paused": False}


def _pause(call: RequestCall, seconds: float | None) -> None:
    pool = _pool(call)
    call.backend.pause(pool, seconds)
    act = "resume" if seconds == 0 else "pause"
    audit.note(call.backend, call.caller, act, pool, seconds=seconds)
    call.state.added(call.full_pool(pool))


@table(
    "GET",
    "/api/v1/pools/{pool}/decisions",
    roles=(VIEWER, CONTROLLER),
    query=DecisionsPage,
    answer=Decisions,
)
async def list_decisions(call: RequestCall) -> Any:
    """Scaling decisions with their reasons, newest first; `before` goes on where a page ended."""
    asked = call.query
    group = payload.label(asked.group, "group")
    most = asked.limit + 1 if asked.before is None else MOST_DECISIONS
    found = await call.run(call.backend.decisions, _pool(call), group, most)
    older = [one for one in found if asked.before is None or one.version < asked.before]
    shown, more = views.cut(older, asked.limit)
    return {"decisions": plain(shown), "next": shown[-1].version if more else None}


@table(
    "GET",
    "/api/v1/pools/{pool}/desired",
    roles=(VIEWER, CONTROLLER),
    query=OfGroup,
    answer=Desired,
    errors=(404,),
)
async def get_desired(call: RequestCall) -> Any:
    """How many workers the pool's policy wants now, for KEDA and its like; nothing is recorded."""
    group = payload.label(call.query.group, "group")
    made = await call.run(desired_replicas.decision, call.backend, _pool(call), group)
    return {name: getattr(made, name) for name in Desired.__struct_fields__}


@table(
    "GET",
    "/api/v1/pools/{pool}/stats",
    roles=(VIEWER, CONTROLLER),
    query=TimeWindow,
    answer=schemas.of_record(model.Stats),
)
async def get_stats(call: RequestCall) -> Any:
    """What happened in the last seconds: flows, waits and run times."""
    return plain(await call.run(call.backend.stats, _pool(call), call.query.seconds))


@table(
    "GET",
    "/api/v1/pools/{pool}/history",
    roles=(VIEWER, CONTROLLER),
    query=TimeWindow,
    answer=History,
)
async def get_history(call: RequestCall) -> Any:
    """The same in buckets, oldest first."""
    if call.query.seconds > 35 * 86400:
        raise InvalidInput("history goes back 35 days")
    found = await call.run(call.backend.history, _pool(call), call.query.seconds)
    return {"buckets": plain(found)}
