"""Limits: whatever a client sends, and however slowly, it is refused early and others go on."""

from __future__ import annotations

import collections
import gzip
import json
import socket
import zlib
from collections.abc import Iterator

import pytest
from houses import OPTIONS, Client, House
from servers.orchestrator import serving

from sprat.store.memory.backend import MemoryBackend
from sprat.store.store import Store

JOBS = "/api/v1/pools/papers/jobs"
SMALL = OPTIONS.replace(max_body_bytes=10_000, header_seconds=0.5, body_seconds=0.5)


@pytest.fixture
def house() -> Iterator[House]:
    house = House(SMALL)
    yield house
    house.close()


def raw(house: House, *parts: bytes) -> bytes:
    """What the server answers to these bytes, until it closes."""
    with socket.create_connection(("127.0.0.1", house.served.port), 30) as connection:
        for part in parts:
            connection.sendall(part)
        got = b""
        while part := connection.recv(65536):
            got += part
        return got


def head(house: House, *lines: str) -> bytes:
    key = house.keys["pusher", None]
    said = [f"POST {JOBS} HTTP/1.1", "host: x", f"authorization: Bearer {key}", *lines]
    return "\r\n".join([*said, "content-type: application/json", "", ""]).encode()


def test_a_large_body_is_refused_before_it_is_read(house: House) -> None:
    answer = raw(house, head(house, "content-length: 999999999", "connection: close"))
    assert answer.startswith(b"HTTP/1.1 413")


def test_a_large_chunked_body_is_refused_while_it_comes(house: House) -> None:
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    answer = raw(house, head(house, "transfer-encoding: chunked", "connection: close"), chunk * 4)
    assert answer.startswith(b"HTTP/1.1 413")


def test_a_gzip_bomb_stays_small(pusher: Client) -> None:
    bomb = gzip.compress(b" " * 5_000_000)
    assert len(bomb) < 10_000
    assert pusher("POST", JOBS, bomb, {"Content-Encoding": "gzip"}).status == 413


def test_gzip_is_understood_and_other_encodings_are_refused(pusher: Client) -> None:
    body = gzip.compress(json.dumps({"data": 1}).encode())
    assert pusher("POST", JOBS, body, {"Content-Encoding": "gzip"}).status == 200
    assert pusher("POST", JOBS, b"nonsense", {"Content-Encoding": "gzip"}).status == 400
    deflated = zlib.compress(b'{"data": 1}')
    assert pusher("POST", JOBS, deflated, {"Content-Encoding": "deflate"}).status == 415


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_json_is_refused(pusher: Client, opening: bytes) -> None:
    depth = 100
    closing = b"]" if opening == b"[" else b"}"
    body = b'{"data":' + opening * depth + b"1" + closing * depth + b"}"
    reply = pusher("POST", JOBS, body)
    assert (reply.status, reply.body["error"]) == (422, "too_deep")
    flat = {"data": ["[[[[{{{{" * 100] * 20}
    assert pusher("POST", JOBS, flat).status in (200, 413), "brackets in text are no depth"


def test_a_body_that_stops_coming_is_given_up(house: House) -> None:
    answer = raw(house, head(house, "content-length: 100"), b'{"data"')
    assert answer.startswith(b"HTTP/1.1 408")


def test_headers_that_do_not_come_are_given_up(house: House) -> None:
    try:
        assert raw(house, b"POST / HTTP/1.1\r\nhost: x\r\n") == b""
    except ConnectionResetError:
        pass
    try:
        assert raw(house) == b"", "a connection that says nothing"
    except ConnectionResetError:
        pass


def test_endless_headers_are_refused(house: House) -> None:
    with socket.create_connection(("127.0.0.1", house.served.port), 30) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        lines = (b"x-%d: " % number + b"a" * 1000 + b"\r\n" for number in range(100_000))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            collections.deque(map(connection.sendall, lines), maxlen=0)


def test_slow_clients_do_not_keep_others_waiting(house: House, pusher: Client) -> None:
    slow = [socket.create_connection(("127.0.0.1", house.served.port), 30) for _ in range(200)]
    for connection in slow:
        connection.sendall(b"POST /api/v1/pools HTTP/1.1\r\nhost:")
    for _ in range(20):
        assert pusher("POST", JOBS, {"data": 1}).status == 200
    for connection in slow:
        connection.close()


def test_more_connections_than_allowed_are_told_so() -> None:
    house = House(OPTIONS.replace(max_connections=5))
    try:
        idle = [socket.create_connection(("127.0.0.1", house.served.port), 30) for _ in range(5)]
        reply = house.client("viewer")("GET", "/healthz")
        assert reply.status == 503
        for connection in idle:
            connection.close()
    finally:
        house.close()


def test_the_rate_limit_holds_over_all_servers_of_a_store() -> None:
    now = [1000.0]
    store = Store(MemoryBackend(clock=lambda: now[0]))
    options = OPTIONS.replace(auth=False, qps=5.0)
    with serving(store, options) as one, serving(store, options) as two:
        clients = [Client(one.port), Client(two.port)]
        replies = [clients[n % 2]("GET", "/api/v1/pools") for n in range(12)]
        assert [reply.status for reply in replies] == [200] * 5 + [429] * 7
        assert int(replies[-1].headers["retry-after"]) >= 1
        assert clients[0]("GET", "/healthz").status == 200, "not counted"
        now[0] += 1.0
        assert clients[1]("GET", "/api/v1/pools").status == 200


def test_a_log_line_stays_one_line() -> None:
    import logging

    from sprat.server.logs import JsonLines, Lines

    record = logging.LogRecord("sprat", 20, "", 0, "said %s", ("a\nERROR forged\x1b[2J",), None)
    record.facts = {"key": 'x"\ny=1', "n": 3}
    plain = Lines().format(record)
    assert len(plain.splitlines()) == 1
    assert "\x1b" not in plain
    line = JsonLines().format(record)
    assert len(line.splitlines()) == 1
    assert json.loads(line)["message"] == "said a\nERROR forged\x1b[2J"
