"""Small bodies that would cost much memory or stop the event loop."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from houses import Client, House

from sprat.server import bodies
from sprat.server.http_error import HttpError

MIB = 1 << 20
STREAM = "/api/v1/pools/papers/jobs/stream"
UNPACKED = {
    "one long string": b'{"pool":"' + b"[" * 70 + b"a" * 8 * MIB + b'"}',
    "a string of escapes": b'["' + b'[\\"' * 2 * MIB + b'"]',
    "backslashes": b'["' + b"[" * 70 + b"\\" * 8 * MIB + b'"]',
}


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """The block allocates no more than this."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", UNPACKED)
def test_the_check_of_depth_takes_little_memory(name: str) -> None:
    with at_most(MIB):
        asyncio.run(bodies.check_depth(UNPACKED[name]))


def test_other_requests_have_their_turn_while_a_body_is_checked() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def check() -> None:
        task = asyncio.create_task(other())
        await bodies.check_depth(b"[" + b"[]," * (MIB // 3) + b"1]")
        task.cancel()

    asyncio.run(check())
    assert turns >= MIB // bodies.PIECE_BYTES


def is_too_deep(body: bytes) -> bool:
    """What the check answers, byte by byte."""
    depth = deepest = 0
    is_inside = is_escaped = False
    for byte in body:
        if is_inside:
            is_inside = is_escaped or byte != ord('"')
            is_escaped = byte == ord("\\") and not is_escaped
        else:
            is_inside = byte == ord('"')
            depth += bodies._OPEN.get(byte, 0)
            deepest = max(deepest, depth)
    return deepest > bodies.MAX_DEPTH


def test_the_check_of_depth_does_not_depend_on_where_pieces_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bodies, "MAX_DEPTH", 3)
    draw = random.Random(7)
    seen = set()
    for _ in range(1000):
        monkeypatch.setattr(bodies, "PIECE_BYTES", draw.randint(2, 9))
        parts = [b"[", b"]", b"{", b"}", b'"', b'"', b"a", b'"\\\\\\"[["']
        body = b"".join(draw.choices(parts, k=draw.randint(4, 40)))
        try:
            asyncio.run(bodies.check_depth(body))
            answer = False
        except HttpError:
            answer = True
        assert answer == is_too_deep(body), body
        seen.add(answer)
    assert seen == {True, False}


def test_a_stream_of_empty_lines_stays_small(pusher: Client) -> None:
    empty = b"\n" * (32 * MIB)
    packed = gzip.compress(empty + b'{"data": 1}\n' + empty)
    with at_most(4 * MIB):
        reply = pusher("POST", STREAM, packed, {"Content-Encoding": "gzip"})
    assert (reply.status, reply.body) == (200, {"pushed": 1})


def test_lines_are_put_together_however_they_come(
    pusher: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "PIECE_BYTES", 3)
    lines = b'\n\n{"data": 1}\r\n {"data": 2} \n\n\n{"data": 3}'
    reply = pusher("POST", STREAM, gzip.compress(lines), {"Content-Encoding": "gzip"})
    assert (reply.status, reply.body) == (200, {"pushed": 3})


def test_bytes_after_the_end_of_gzip_are_dropped(pusher: Client) -> None:
    packed = gzip.compress(b'{"data": 1}\n') + b"x" * 16 * MIB
    with at_most(4 * MIB):
        reply = pusher("POST", STREAM, packed, {"Content-Encoding": "gzip"})
    assert (reply.status, reply.body) == (200, {"pushed": 1})


DEEP = "[" * 65 + "]" * 65
IN_TEXT = {  # JSON text inside the JSON of a verb
    "push": {"items": [{"id": "x", "data": DEEP}]},
    "exchange": {
        "settlements": [{"item_id": "x", "token": "y", "outcome": "complete", "result": DEEP}]
    },
    "save": {"claim": {"item_id": "x", "token": "y"}, "checkpoint": DEEP},
    "heartbeat": {"worker": {"worker_id": "w"}, "metadata": f'{{"a": {DEEP}}}', "holding": []},
    "configure": {"settings": f'{{"policy_options": {DEEP}}}'},
    "put": {"kind": "scaling", "name": "x", "body": DEEP},
}


@pytest.mark.parametrize("levels", [65, 980, 100_000])
@pytest.mark.parametrize("verb", IN_TEXT)
def test_deep_json_text_inside_json_is_refused(house: House, verb: str, levels: int) -> None:
    body = {**IN_TEXT[verb]}
    if verb not in ("save", "heartbeat", "put"):
        body["pool"] = "papers"
    text = json.dumps(body).replace(DEEP, "[" * levels + "]" * levels)
    reply = house.client("admin", "acme")("POST", f"/api/v1/store/{verb}", text.encode())
    assert (reply.status, reply.body["error"]) == (422, "invalid_input"), reply.body
    assert house.store.pools() == []
