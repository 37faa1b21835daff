"""The small HTTP server of the controller and of webhooks: slow clients keep no other waiting."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator

import pytest
from patience import eventually

from sprat.core.http_listener import BoundedRequest, BoundedServer

AT_ONCE = 4


class Request(BoundedRequest):
    timeout = 30.0

    def do_GET(self) -> None:  # noqa: N802  (its name there)
        self.say_json(200, {"ok": True})

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[BoundedServer]:
    with BoundedServer("127.0.0.1", 0, Request, at_once=AT_ONCE) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


def connect(server: BoundedServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), 10)


def status(server: BoundedServer) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", "/")
    found = connection.getresponse().status
    connection.close()
    return found


def test_slow_requests_make_room_for_new_ones(server: BoundedServer) -> None:
    """The time for a request is far longer than the test waits."""
    slow = [connect(server) for _ in range(3 * AT_ONCE)]
    for connection in slow:
        connection.sendall(b"G")
    assert [status(server) for _ in range(3)] == [200] * 3
    assert slow[0].recv(1) == b"", "the oldest was ended"
    for connection in slow:
        connection.close()


def test_a_request_that_trickles_ends_in_time(server: BoundedServer) -> None:
    server._patience = 0.3
    with connect(server) as connection:
        connection.settimeout(0.05)

        def is_ended() -> bool:
            try:
                connection.sendall(b"G")
                return connection.recv(100) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        eventually(is_ended, within=10)
