"""Connections that would stay open or grow without a key: each ends within its limit."""

from __future__ import annotations

import collections
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from houses import OPTIONS, House
from patience import eventually
from servers.orchestrator import OPEN, serving
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sprat.server import protocol
from sprat.server import serving as server_module
from sprat.store.memory.backend import MemoryBackend
from sprat.store.store import Store

SHORT = OPTIONS.replace(header_seconds=0.3, body_seconds=0.6)
GET = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
POST = b"POST /api/v1/pools/p/jobs HTTP/1.1\r\nhost: x\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"
GONE = (ConnectionResetError, BrokenPipeError)


@pytest.fixture
def house() -> Iterator[House]:
    house = House(SHORT)
    yield house
    house.close()


def connect(house: House) -> socket.socket:
    return socket.create_connection(("127.0.0.1", house.served.port), 30)


def answer(connection: socket.socket) -> bytes:
    """One answer, which has a body."""
    got = b""
    while b"\r\n\r\n" not in got or not got.endswith(b"}"):
        part = connection.recv(65536)
        assert part, got
        got += part
    return got


def until_closed(connection: socket.socket) -> bytes:
    """Everything until the server ends the connection."""
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    return got


def open_connections(house: House) -> set:
    return house.served.server.server_state.connections


# -- headers and trailers -----------------------------------------------------------------------


def test_trailers_are_dropped(house: House) -> None:
    with connect(house) as connection:
        connection.sendall(CHUNKED + b"0\r\n" + b"a:b\r\n" * 5000 + b"\r\n")
        assert answer(connection).startswith(b"HTTP/1.1 401")
        assert [len(one.headers) for one in open_connections(house)] == [0]
        connection.sendall(GET)
        assert answer(connection).startswith(b"HTTP/1.1 200"), "the connection is kept"


@pytest.mark.parametrize("trailer", [b"a:b\r\n" * 2000, b"a" * 10_000, b"a:" + b"b" * 10_000])
def test_endless_trailers_end_the_connection(house: House, trailer: bytes) -> None:
    with connect(house) as connection:
        connection.sendall(CHUNKED + b"0\r\n")
        with pytest.raises(GONE):
            collections.deque(map(connection.sendall, [trailer] * 10_000), maxlen=0)


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"a: " + b"b" * 65_000, b"200"),
        (b"a: " + b"b" * 66_000, b"431"),
        (b"a: " + b"b" * 120_000, b"431"),
        (b"\r\n".join([b"a: b"] * 190), b"200"),
        (b"\r\n".join([b"a: b"] * 210), b"431"),
    ],
)
def test_the_header_limit_is_exact_however_the_headers_come(
    house: House, header: bytes, status: bytes
) -> None:
    with connect(house) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nconnection: close\r\n" + header + b"\r\n\r\n")
        assert until_closed(connection).startswith(b"HTTP/1.1 " + status)


def test_a_flood_of_pipelined_requests_ends_the_connection(house: House) -> None:
    with connect(house) as connection:
        connection.sendall(GET * 5000)
        assert until_closed(connection).count(b"HTTP/1.1") < protocol.MAX_PIPELINED


def test_uvicorn_still_calls_the_methods_that_set_limits() -> None:
    """The class is private to uvicorn: a renamed method would switch a limit off silently."""
    ours = {
        name for name in vars(protocol.PatientProtocol) if name.startswith(("on_", "connection"))
    }
    ours |= {"data_received", "pause_writing", "resume_writing", "send_400_response"}
    ours |= {"timeout_keep_alive_handler"}
    assert ours <= vars(HttpToolsProtocol).keys()
    assert len(ours) == 12


# -- connections that would never end -----------------------------------------------------------


def test_an_empty_line_after_an_answer_does_not_keep_a_connection(house: House) -> None:
    with connect(house) as connection:
        connection.sendall(GET)
        answer(connection)
        connection.sendall(b"\r\n")
        assert until_closed(connection) == b""


def test_a_refused_body_that_stops_coming_does_not_keep_a_connection(house: House) -> None:
    with connect(house) as connection:
        connection.sendall(POST + b"content-length: 1000\r\n\r\n")
        assert answer(connection).startswith(b"HTTP/1.1 401")
        connection.sendall(b"x")
        assert until_closed(connection) == b""


def test_a_refused_body_that_comes_leaves_the_connection_usable(house: House) -> None:
    with connect(house) as connection:
        connection.sendall(POST + b"content-length: 1000\r\n\r\n")
        assert answer(connection).startswith(b"HTTP/1.1 401")
        connection.sendall(b"x" * 1000)
        connection.settimeout(3 * SHORT.header_seconds)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.sendall(GET)
        assert answer(connection).startswith(b"HTTP/1.1 200")


def test_a_body_that_trickles_is_given_up(house: House) -> None:
    key = house.keys["pusher", None].encode()
    with connect(house) as connection:
        connection.sendall(
            POST + b"authorization: Bearer " + key + b"\r\ncontent-length: 1000\r\n\r\n"
        )
        connection.settimeout(0.1)
        for _ in range(100):  # ten seconds, each byte well within the time for a piece
            try:
                connection.sendall(b" ")
                got = connection.recv(65536)
                break
            except TimeoutError:
                pass
        assert got.startswith(b"HTTP/1.1 408")


def test_an_answer_that_is_not_read_ends_the_connection(house: House) -> None:
    connection = socket.socket()
    with connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(("127.0.0.1", house.served.port))
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 40)
        eventually(lambda: open_connections(house), "it is connected")
        eventually(lambda: not open_connections(house), "the connection is still there")


def test_answers_that_are_read_slowly_arrive(house: House) -> None:
    """Each read comes within the time for a piece, all of them take several times as long."""
    get = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n"
    with connect(house) as connection:
        connection.sendall((get + b"\r\n") * 9 + get + b"connection: close\r\n\r\n")
        got = bytearray()
        while part := connection.recv(100_000):
            got += part
            time.sleep(SHORT.body_seconds / 10)
        assert got.count(b"HTTP/1.1 200") == 10


def test_a_connection_that_ends_with_requests_waiting_logs_no_error(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(house) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 40)
        eventually(lambda: any(one.flow.write_paused for one in open_connections(house)))
    eventually(lambda: not open_connections(house))
    eventually(lambda: not house.served.server.server_state.tasks)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


# -- TLS ----------------------------------------------------------------------------------------


def test_silent_tls_connections_are_counted_and_end(
    certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "TOLD_SO", 0)
    options = OPEN.replace(
        certificate=str(certificates / "server.pem"),
        private_key=str(certificates / "server.key"),
        max_connections=5,
        header_seconds=1.0,
    )
    with serving(Store(MemoryBackend()), options) as served:
        address = ("127.0.0.1", served.port)
        silent = [socket.create_connection(address, 30) for _ in range(8)]
        assert [until_closed(one) for one in silent[5:]] == [b""] * 3, "more than the cap"
        assert not served.server.server_state.connections, "none of them shook hands"
        silent[0].settimeout(0.05)
        with pytest.raises(TimeoutError):
            silent[0].recv(1)
        silent[0].settimeout(30)
        assert [until_closed(one) for one in silent[:5]] == [b""] * 5, "the time is over"
        context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
        with context.wrap_socket(
            socket.create_connection(address, 30), server_hostname="127.0.0.1"
        ) as client:
            client.sendall(GET)
            assert answer(client).startswith(b"HTTP/1.1 200")
        for one in silent:
            one.close()
