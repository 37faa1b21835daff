"""One request to a worker's endpoint: to the address that was checked, no redirects, no proxies,
and no more of the answer than is needed."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache

from sprat.core import jsontext
from sprat.core.record import Record
from sprat.server.addresses import Target

MAX_ANSWER_BYTES = 64 * 1024


class Reached(Record):
    """What a worker answered. `content` is its JSON object, if it is one."""

    status: int
    content: dict[str, object]


async def ask(target: Target, *, seconds: float, body: bytes | None = None) -> Reached | None:
    """The answer, or None when there is none in time or it is not HTTP."""
    try:
        async with asyncio.timeout(seconds):
            return await _ask(target, body)
    except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
        return None  # ssl.SSLError is an OSError


async def _ask(target: Target, body: bytes | None) -> Reached:
    request = _request(target, body)
    tls = _tls() if target.is_tls else None
    reader, writer = await asyncio.open_connection(
        target.address, target.port, ssl=tls, server_hostname=target.host if tls else None
    )
    try:
        writer.write(request)
        answer = await _at_most(reader, MAX_ANSWER_BYTES)
    finally:
        writer.close()
    return _read(answer)


@cache
def _tls() -> ssl.SSLContext:
    """Made once: it reads all authorities of the system, while the event loop waits."""
    return ssl.create_default_context()


def _request(target: Target, body: bytes | None) -> bytes:
    if not target.path.isprintable() or " " in target.path or not target.host.isprintable():
        raise ValueError("a path or a host that would change the request")
    host = f"[{target.host}]" if ":" in target.host else target.host
    lines = [
        f"{'GET' if body is None else 'POST'} {target.path} HTTP/1.0",
        f"host: {host}:{target.port}",
        "user-agent: sprat",
        "connection: close",
    ]
    if body is not None:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (body or b"")


async def _at_most(reader: asyncio.StreamReader, limit: int) -> bytes:
    got = b""
    while len(got) <= limit and (part := await reader.read(limit + 1 - len(got))):
        got += part
    return got


def _read(answer: bytes) -> Reached:
    head, _, content = answer.partition(b"\r\n\r\n")
    words = head.split(b"\r\n")[0].split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/1."):
        raise ValueError("this is no HTTP")
    try:
        found = jsontext.loads(content.decode())
    except (ValueError, RecursionError):
        found = None
    return Reached(status=int(words[1]), content=found if isinstance(found, dict) else {})
