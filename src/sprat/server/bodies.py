"""Reading a request's body: capped before it is parsed, whatever way it comes."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Iterator

from starlette.types import Receive

from sprat.server.http_error import HttpError

SLOWEST = 4096  # bytes per second of a whole body; a stream may have to wait for its source
PIECE_BYTES = 64 * 1024  # that are looked at before other requests have their turn
MAX_DEPTH = 64  # of a JSON body; what jobs carry is data, not a program
# Possessive: a repeated group that could go back keeps 120 bytes for each character.
_STRINGS = re.compile(rb'(?s)"(?:[^"\\]++|\\.)*+"?')
_IS_INSIDE = b"\0"  # JSON has no such byte outside of a string
_OPEN = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


async def whole(headers: dict[bytes, bytes], receive: Receive, cap: int, seconds: float) -> bytes:
    """All of the body, or an HttpError as soon as it is too large or too slow."""
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length[:18]) > cap:
        raise too_large(cap)
    parts: list[bytes] = []
    size = 0
    async for part in chunks(headers, receive, seconds, slowest=SLOWEST):
        size += len(part)
        if size > cap:
            raise too_large(cap)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def chunks(
    headers: dict[bytes, bytes], receive: Receive, seconds: float, *, slowest: int = 0
) -> AsyncIterator[bytes]:
    """The body piece by piece, unpacked if it is gzip. Each piece comes within `seconds`; with
    `slowest`, all of them also come at that rate (bytes per second), after `seconds` of grace."""
    unpack = _unpacker(headers.get(b"content-encoding", b"identity").strip().lower())
    now = asyncio.get_running_loop().time
    last = now() + seconds
    while True:
        piece = now() + seconds
        try:
            async with asyncio.timeout_at(min(piece, last) if slowest else piece):
                message = await receive()
        except TimeoutError:
            raise HttpError(408, "too_slow", "the body comes too slowly") from None
        last += len(message.get("body", b"")) / slowest if slowest else 0
        if message["type"] == "http.disconnect":
            raise HttpError(
                400, "disconnected", "the client went away in the middle of its request"
            )
        for part in unpack(message.get("body", b"")):
            yield part
            if len(part) == PIECE_BYTES:
                await asyncio.sleep(0)
        if not message.get("more_body", False):
            return


class _Gunzip:
    """Unpacks a piece at a time: a small bomb stays small."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def __call__(self, packed: bytes) -> Iterator[bytes]:
        while packed and not self._inner.eof:  # what follows the end is dropped
            try:
                part = self._inner.decompress(packed, PIECE_BYTES)
            except zlib.error as error:
                raise HttpError(400, "bad_gzip", f"the body is not gzip: {error}") from None
            packed = self._inner.unconsumed_tail
            yield part


def _unpacker(encoding: bytes):  # type: ignore[no-untyped-def]  # a function of bytes
    if encoding in (b"identity", b""):
        return lambda part: [part]
    if encoding == b"gzip":
        return _Gunzip()
    raise HttpError(
        415, "unknown_encoding", "a body comes as it is or as gzip, in no other encoding"
    )


def too_large(cap: int) -> HttpError:
    return HttpError(413, "too_large", f"the body is larger than {cap:,} bytes: send it in parts")


async def check_depth(body: bytes) -> None:
    """Refuse JSON that is nested too deeply, before a parser recurses into it."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    quote = b""
    for piece in _pieces(body):
        # The added string is removed like any other, unless its quote ends one of the piece.
        outside = _STRINGS.sub(b"", quote + piece + b'"' + _IS_INSIDE + b'"')
        quote = b'"' if outside.endswith(_IS_INSIDE) else b""
        for byte in outside:
            depth += _OPEN.get(byte, 0)
            if depth > MAX_DEPTH:
                raise HttpError(422, "too_deep", f"the JSON is nested more than {MAX_DEPTH} levels")
        await asyncio.sleep(0)


def _pieces(body: bytes) -> Iterator[bytes]:
    """The body in pieces; a backslash stays with the character that it escapes."""
    start = 0
    while start < len(body):
        piece = body[start : start + PIECE_BYTES]
        has_more = start + PIECE_BYTES < len(body)
        if has_more and (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = piece[:-1]
        start += len(piece)
        yield piece
