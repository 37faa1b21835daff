"""The ASGI application: each request is let in, read, checked, answered, and logged.

The routes come from the tables in `routes/`. Whatever goes wrong is one JSON object with a word
for programs and a sentence for people; only a bug is a 500, and it is logged with its traceback.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.routing import Route as PathRoute
from starlette.types import Receive, Scope, Send

from sprat.core import jsontext
from sprat.core.errors import SpratError
from sprat.server import auth, bodies, logs, openapi, tables
from sprat.server.http_error import HttpError, not_found, of_error
from sprat.server.options import Options
from sprat.server.route import RequestCall, Response, Route
from sprat.server.state import ServerState
from sprat.server.tenancy import TenantBackend
from sprat.store.backend import PROTOCOL, Backend

log = logging.getLogger("sprat.server")


def application(backend: Backend, options: Options) -> Starlette:
    """The application that serves this store."""
    state = ServerState(backend, options)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await state.start()
        try:
            yield
        finally:
            await state.stop()

    table = tables.all_routes()
    state.openapi = openapi.text(table)
    app = Starlette(
        routes=[
            PathRoute(route.path, Endpoint(route, state), methods=[route.method]) for route in table
        ],
        lifespan=lifespan,
        exception_handlers={404: _nothing_here, 405: _nothing_here},
    )
    app.state.sprat = state
    app.state.table = table
    return app


class Endpoint:
    """Answers the requests for one route."""

    def __init__(self, route: Route, state: ServerState) -> None:
        self._route = route
        self._state = state
        self._body = None if route.body is None else msgspec.json.Decoder(route.body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        headers = dict(scope["headers"])
        state, caller = self._state, None
        try:
            caller = await auth.admit(state, self._route, headers)
            with state.under_way.one(caller.tenant):
                answer = await self._answer(scope, receive, headers, caller)
                await respond(send, answer)
        except HttpError as why:
            answer = error_response(why)
            await respond(send, answer)
        logs.request(state, scope, self._route, caller, answer.status, began)

    async def _answer(
        self, scope: Scope, receive: Receive, headers: dict[bytes, bytes], caller: Any
    ) -> Response:
        state, route = self._state, self._route
        try:
            call = RequestCall(
                state=state,
                caller=caller,
                backend=seen_by(caller.tenant, state),
                path=scope["path_params"],
                headers=headers,
            )
            if route.query is not None:
                call.query = read_query(route.query, scope["query_string"])
            await self._read(call, receive)
            return answered(await route.handler(call))
        except HttpError as why:
            return error_response(why)
        except SpratError as error:
            return error_response(of_error(error))
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a bug: %s %s", route.method, route.path)
            return error_response(
                HttpError(500, "bug", "something is wrong in the server: see its log")
            )

    async def _read(self, call: RequestCall, receive: Receive) -> None:
        options = self._state.options
        cap, seconds = options.max_body_bytes, options.body_seconds
        if self._route.takes != "application/json":
            call.stream = bodies.chunks(call.headers, receive, seconds)
            return
        if self._body is None:
            return
        media = call.headers.get(b"content-type", b"application/json").partition(b";")[0]
        if media.strip().lower() != b"application/json":
            raise HttpError(
                415, "unknown_media_type", "send JSON, as content-type application/json"
            )
        body = await bodies.whole(call.headers, receive, cap, seconds)
        await bodies.check_depth(body)
        try:
            call.body = self._body.decode(body or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise HttpError(422, "invalid_input", f"the body cannot be used: {error}") from None


def seen_by(tenant: str | None, state: ServerState) -> Backend:
    """The store as a caller may see it."""
    return state.backend if tenant is None else TenantBackend(state.backend, tenant, state.pools)


def read_query(shape: Any, raw: bytes) -> Any:
    """The query string as the shape that a route asks for."""
    from urllib.parse import parse_qsl

    try:
        given = dict(parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=50))
        return msgspec.convert(given, shape, strict=False)
    except (ValueError, msgspec.ValidationError) as error:
        raise HttpError(422, "invalid_input", f"the query cannot be used: {error}") from None


def answered(given: Any) -> Response:
    """What a handler returned, as an answer."""
    if isinstance(given, Response):
        return given
    return Response(body=msgspec.json.encode(given))


def error_response(why: HttpError) -> Response:
    headers = {}
    if why.retry_after is not None:
        headers["retry-after"] = str(max(1, math.ceil(why.retry_after)))
    if why.status in (408, 413):
        headers["connection"] = "close"  # the rest of the body may still come: nobody reads it
    if why.status == 401:
        headers["www-authenticate"] = 'Bearer realm="sprat"'
    body = jsontext.dumps({"error": why.word, "message": str(why)})
    return Response(status=why.status, body=body.encode("utf-8", "replace"), headers=headers)


async def respond(send: Send, answer: Response) -> None:
    headers = [
        (b"content-length", str(len(answer.body)).encode()),
        (b"cache-control", b"no-store"),
        (b"sprat-protocol", PROTOCOL.encode()),
        *((name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()),
    ]
    if answer.status != 204:
        headers.append((b"content-type", answer.media_type.encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _nothing_here(request: Any, error: Any) -> Any:
    from starlette.responses import Response

    why = not_found()
    if error.status_code == 405:
        why = HttpError(405, "wrong_method", "this path has no such method")
    answer = error_response(why)
    headers = {**(error.headers or {}), **answer.headers}
    return Response(answer.body, answer.status, headers, media_type=answer.media_type)
