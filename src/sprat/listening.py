"""A small HTTP server from the standard library, with bounds: so many requests at once, so many
seconds for somebody to say what they want."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn

from sprat.errors import InvalidInput

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
        try:
            super().__init__((host, port), request)
        except OSError as error:
            raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror}") from error

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(timeout=self._patience):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Somebody went away in the middle: their affair."""


class BoundedRequest(BaseHTTPRequestHandler):
    timeout = 10.0  # seconds for somebody to say what they want
    server_version = "sprat"
    sys_version = ""

    def say_json(self, status: int, said: dict[str, Any]) -> None:
        self.say(status, json.dumps(said) + "\n", JSON)

    def say(self, status: int, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
