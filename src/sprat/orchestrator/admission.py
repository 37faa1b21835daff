"""Who is let in: the key of a request, what its roles allow, and how many requests there may be."""

from __future__ import annotations

from sprat.errors import StoreError
from sprat.orchestrator.refusal import Refusal, of_error
from sprat.orchestrator.roles import EVERYBODY, NOBODY, Caller
from sprat.orchestrator.route import Route
from sprat.orchestrator.state import State

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")
BUCKET = "sprat.global_qps"


async def admit(state: State, route: Route, headers: dict[bytes, bytes]) -> Caller:
    """The caller, or a refusal."""
    caller = await _recognised(state, headers) if route.roles is not None else NOBODY
    if route.roles is not None and not caller.may(route.roles):
        raise Refusal(
            403, "wrong_role", f"this needs a key with a role of: {', '.join(route.roles)}"
        )
    if route.roles is not None and route.limited and state.options.qps > 0:
        await _limit(state)
    return caller


async def _recognised(state: State, headers: dict[bytes, bytes]) -> Caller:
    if not state.options.auth:
        _must_be_meant(headers)
        return EVERYBODY
    given = headers.get(b"authorization", b"").decode("latin-1")
    scheme, _, text = given.partition(" ")
    if scheme.lower() != "bearer" or not text:
        raise Refusal(401, "no_key", "send an API key: Authorization: Bearer sprat_...")
    caller = state.keys.remembered(text)
    if caller is None:
        try:
            caller = await state.threads.run(state.keys.look_up, text)
        except StoreError as error:
            raise of_error(error) from None
    if caller is None:
        raise Refusal(401, "wrong_key", "this API key is not valid, or no longer")
    return caller


def _must_be_meant(headers: dict[bytes, bytes]) -> None:
    """Without keys, a web page in a browser here could send requests by a name of its own that
    leads to this address, or blindly to ours: only those that name this host are meant for us."""
    host = headers.get(b"host", b"localhost").decode("latin-1")
    origin = headers.get(b"origin")
    page = host if origin is None else origin.decode("latin-1").partition("://")[2]
    for said in (host, page):
        name = said if said.endswith("]") else said.rpartition(":")[0] or said
        if name.lower() not in LOOPBACK_NAMES:
            raise Refusal(
                403, "wrong_host", "without API keys, this server answers to localhost only"
            )


async def _limit(state: State) -> None:
    """One token a request, from a bucket in the store that all processes share."""
    qps = state.options.qps
    try:
        seconds = await state.threads.run(state.backend.take, BUCKET, 1.0, qps, max(1.0, qps))
    except StoreError as error:
        raise of_error(error) from None
    if seconds > 0:
        raise Refusal(429, "too_many", f"more than {qps:g} requests a second", retry_after=seconds)
