"""Who is let in: the key of a request, what its roles allow, and how many requests there may be."""

from __future__ import annotations

from sprat.core.errors import StoreError
from sprat.server.http_error import HttpError, of_error
from sprat.server.roles import EVERYBODY, NOBODY, Caller
from sprat.server.route import Route
from sprat.server.state import ServerState
from sprat.server.threads import STRANGERS

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")
BUCKET = ":global_qps"  # no tenant has a bucket of this name: theirs begin with the tenant
OWN_SITE = (b"same-origin", b"none")  # what a browser sends from our own page, or for a bookmark
NEVER_BLIND = (b"application/json", b"application/x-ndjson")  # browsers ask before they send these


async def admit(state: ServerState, route: Route, headers: dict[bytes, bytes]) -> Caller:
    """The caller, or an HttpError."""
    if route.roles is not None and not state.options.auth:
        _must_be_meant(route.method, headers)
    caller = await _recognised(state, headers) if route.roles is not None else NOBODY
    if route.roles is not None and not caller.may(route.roles):
        raise HttpError(
            403, "wrong_role", f"this needs a key with a role of: {', '.join(route.roles)}"
        )
    if route.roles is not None and route.limited and state.options.qps > 0:
        await _limit(state)
    return caller


async def _recognised(state: ServerState, headers: dict[bytes, bytes]) -> Caller:
    if not state.options.auth:
        return EVERYBODY
    given = headers.get(b"authorization", b"").decode("latin-1")
    scheme, _, text = given.partition(" ")
    if scheme.lower() != "bearer" or not text:
        raise HttpError(401, "no_key", "send an API key: Authorization: Bearer sprat_...")
    caller = state.keys.remembered(text)
    if caller is None:
        try:
            caller = await state.threads.run_for(STRANGERS, state.keys.look_up, text)
        except StoreError as error:
            raise of_error(error) from None
    if caller is None:
        raise HttpError(401, "wrong_key", "this API key is not valid, or no longer")
    return caller


def _must_be_meant(method: str, headers: dict[bytes, bytes]) -> None:
    """Without keys, a web page in a browser here could send requests by a name of its own that
    leads to this address, or blindly to ours: only those that name this host are meant for us, and
    of pages only our own."""
    host = headers.get(b"host", b"localhost").decode("latin-1").lower()
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name not in LOOPBACK_NAMES:
        raise HttpError(
            403, "wrong_host", "without API keys, this server answers to localhost only"
        )
    origin = headers.get(b"origin")
    page = host if origin is None else origin.decode("latin-1").lower().partition("://")[2]
    if page != host or headers.get(b"sec-fetch-site", b"none").lower() not in OWN_SITE:
        raise HttpError(403, "wrong_page", "without API keys, this server answers to no other page")
    media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if method == "POST" and media not in NEVER_BLIND:
        raise HttpError(
            415, "unknown_media_type", "without API keys, a POST is sent as application/json"
        )


# -- how many requests --------------------------------------------------------------------------


async def _limit(state: ServerState) -> None:
    try:
        seconds = await state.threads.run(seconds_over, state)
    except StoreError as error:
        raise of_error(error) from None
    if seconds > 0:
        raise too_many(state, seconds)


def seconds_over(state: ServerState) -> float:
    """Count one request: 0, or how long it has to wait until it may come again. The bucket is in
    the store, and all processes share it. Blocks."""
    qps = state.options.qps
    return state.backend.take(BUCKET, 1.0, qps, max(1.0, qps)) if qps > 0 else 0.0


def too_many(state: ServerState, seconds: float) -> HttpError:
    qps = state.options.qps
    return HttpError(429, "too_many", f"more than {qps:g} requests a second", retry_after=seconds)


def claims_allowed(state: ServerState, claim: int, *, has_news: bool) -> int:
    """How many items an exchange may claim: settlements always go through, a claim is counted. One
    that brings no news about what the worker holds is refused as a whole. Blocks."""
    if has_news and not claim:
        return 0
    seconds = seconds_over(state)
    if seconds > 0 and not has_news:
        raise too_many(state, seconds)
    return 0 if seconds > 0 else claim
