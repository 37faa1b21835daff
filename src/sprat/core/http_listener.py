"""A small HTTP server from the standard library, with bounds on the requests at the same time and
on the seconds for all of a request. When it is full, the request that is read for longest ends."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn

from sprat.core.errors import InvalidInput
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

JSON = "application/json"


class BoundedServer(ThreadingMixIn, HTTPServer):
    """Listens from the start; `request` is made for each connection, in a thread of its own."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(
        self, host: str, port: int, request: type[BoundedRequest], *, at_once: int
    ) -> None:
        self._free = threading.BoundedSemaphore(at_once)
        self._patience = request.timeout
        self._reading: dict[socket.socket, float] = {}  # since when, oldest first
        try:
            super().__init__((host, port), request)
        except OSError as error:
            raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror}") from error

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self._end_slow(runtime.monotonic(), at_most=1)
            if not self._free.acquire(timeout=self._patience):
                self.shutdown_request(request)
                return
        self._reading[request] = runtime.monotonic()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.has_read(request)
            self._free.release()

    def service_actions(self) -> None:
        """Called twice a second, and after each connection."""
        self._end_slow(runtime.monotonic() - self._patience)

    def has_read(self, request: socket.socket) -> None:
        """The whole request came: its answer may take its time."""
        self._reading.pop(request, None)

    def _end_slow(self, before: float, at_most: int | None = None) -> None:
        """End requests that began before this time; their threads read the end of the stream."""
        slow = [request for request, began in list(self._reading.items()) if began <= before]
        for request in slow[:at_most]:
            self.has_read(request)
            try:
                request.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it ended by itself

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client closed the connection in the middle: nothing to report."""


class BoundedRequest(BaseHTTPRequestHandler):
    server: BoundedServer
    timeout = 10.0  # seconds for all of a request
    server_version = "sprat"
    sys_version = ""

    def say_json(self, status: int, body: dict[str, Any]) -> None:
        self.say(status, json.dumps(body) + "\n", JSON)

    def say(self, status: int, text: str, kind: str) -> None:
        self.server.has_read(self.connection)
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
