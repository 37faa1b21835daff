"""The service itself: is it alive, is it ready, what does it count, what can it do."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from sprat import __version__
from sprat.core.errors import StoreError
from sprat.core.record import plain
from sprat.server import audit, views
from sprat.server.http_error import of_error
from sprat.server.roles import ADMIN, CONTROLLER, VIEWER
from sprat.server.route import RequestCall, Response, Table

table = Table("service")

READY_SECONDS = 0.5  # after an answer of the store, it counts as there
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Alive(msgspec.Struct, kw_only=True):
    status: str
    version: str


class Act(msgspec.Struct, kw_only=True):
    id: str
    act: str
    subject: str
    key: str
    at: float


class Acts(msgspec.Struct, kw_only=True):
    acts: list[Act]
    next: str | None


@table("GET", "/healthz", roles=None, answer=Alive)
async def is_alive(call: RequestCall) -> Any:
    """Whether the process answers. It asks nobody else."""
    return {"status": "ok", "version": __version__}


@table("GET", "/readyz", roles=None, answer=Alive)
async def is_ready(call: RequestCall) -> Any:
    """Whether requests are welcome: the store answers, and the server is not shutting down."""
    if call.state.is_leaving:
        raise call.state.leaving()
    now = asyncio.get_running_loop().time()
    if now >= call.state.is_ready_until:  # no key is needed: a flood shall not reach the store
        try:
            await call.run(call.backend.document, "none", "none")
        except StoreError as error:
            raise of_error(error) from None
        call.state.is_ready_until = now + READY_SECONDS
    return {"status": "ok", "version": __version__}


@table("GET", "/metrics", roles=(VIEWER, CONTROLLER), media_type=PROMETHEUS)
async def get_metrics(call: RequestCall) -> Any:
    """Figures for Prometheus: of all pools that the key sees."""
    tenant = call.caller.tenant
    own = call.state.samples() if tenant is None else ()
    body = await call.state.scrapes.text(tenant, call.backend, own)
    return Response(body=body, media_type=PROMETHEUS)


@table("GET", "/api/v1/audit", roles=(ADMIN,), query=views.Page, answer=Acts)
async def list_acts(call: RequestCall) -> Any:
    """Who did what that mattered, oldest first; kept 90 days."""
    found = await call.run(audit.page, call.backend, call.query.limit + 1, call.query.after)
    shown, more = views.cut(found, call.query.limit)
    return {"acts": plain(shown), "next": shown[-1]["id"] if more else None}


@table("GET", "/openapi.json", roles=None, media_type="application/json", limited=False)
async def get_openapi(call: RequestCall) -> Any:
    """This document."""
    return Response(body=call.state.openapi)
