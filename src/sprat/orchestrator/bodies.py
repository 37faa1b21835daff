"""Reading a request's body: capped before it is parsed, whatever way it comes."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator

from starlette.types import Receive

from sprat.orchestrator.refusal import Refusal

MAX_DEPTH = 64  # of a JSON body; what jobs carry is data, not a program
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"?')
_OPEN = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


async def whole(headers: dict[bytes, bytes], receive: Receive, cap: int, seconds: float) -> bytes:
    """All of the body, or a refusal as soon as it is too large or too slow."""
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length[:18]) > cap:
        raise too_large(cap)
    parts: list[bytes] = []
    size = 0
    async for part in chunks(headers, receive, cap, seconds):
        size += len(part)
        if size > cap:
            raise too_large(cap)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def chunks(
    headers: dict[bytes, bytes], receive: Receive, cap: int, seconds: float
) -> AsyncIterator[bytes]:
    """The body piece by piece, unpacked if it is gzip; each piece has to come in time."""
    unpack = _unpacker(headers.get(b"content-encoding", b"identity").strip().lower(), cap)
    while True:
        try:
            async with asyncio.timeout(seconds):
                message = await receive()
        except TimeoutError:
            raise Refusal(408, "too_slow", f"no more of the body for {seconds:g} seconds") from None
        if message["type"] == "http.disconnect":
            raise Refusal(400, "disconnected", "the client went away in the middle of its request")
        for part in unpack(message.get("body", b"")):
            yield part
        if not message.get("more_body", False):
            return


class _Gunzip:
    """Unpacks at most a cap's worth at a time: a small bomb stays small."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._inner = zlib.decompressobj(wbits=31)

    def __call__(self, packed: bytes) -> list[bytes]:
        try:
            part = self._inner.decompress(packed, self._cap + 1)
        except zlib.error as error:
            raise Refusal(400, "bad_gzip", f"the body is not gzip: {error}") from None
        if self._inner.unconsumed_tail:
            raise too_large(self._cap)
        return [part]


def _unpacker(encoding: bytes, cap: int):  # type: ignore[no-untyped-def]  # a function of bytes
    if encoding in (b"identity", b""):
        return lambda part: [part]
    if encoding == b"gzip":
        return _Gunzip(cap)
    raise Refusal(415, "unknown_encoding", "a body comes as it is or as gzip, in no other encoding")


def too_large(cap: int) -> Refusal:
    return Refusal(413, "too_large", f"the body is larger than {cap:,} bytes: send it in parts")


def check_depth(body: bytes) -> None:
    """Refuse JSON that is nested too deeply, before a parser recurses into it."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return
    depth = deepest = 0
    for byte in _STRINGS.sub(b"", body):
        depth += _OPEN.get(byte, 0)
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise Refusal(422, "too_deep", f"the JSON is nested more than {MAX_DEPTH} levels deep")
