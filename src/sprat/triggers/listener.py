"""A small HTTP listener for webhooks: standard library, a bounded number of threads, bodies and
seconds. For the open internet put a proxy with TLS in front of it."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn

from sprat.errors import InvalidInput
from sprat.triggers import webhook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.store import Store

REQUEST_SECONDS = 10.0  # for somebody to say what they want
MAX_AT_ONCE = 32
PASSES_AT_ONCE = 4  # requests that fire at the same time; the others wait for their turn
HEALTH = "/health"


class Listener(ThreadingMixIn, HTTPServer):
    """Serves `POST /triggers/NAME` and `GET /health` until `shutdown`."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, store: Store, host: str, port: int) -> None:
        self.store = store
        self._free = threading.BoundedSemaphore(MAX_AT_ONCE)
        self.turns = threading.BoundedSemaphore(PASSES_AT_ONCE)
        try:
            super().__init__((host, port), _Request)
        except OSError as error:
            raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror}") from error

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(timeout=REQUEST_SECONDS):
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


class _Request(BaseHTTPRequestHandler):
    server: Listener
    timeout = REQUEST_SECONDS
    server_version = "sprat"
    sys_version = ""

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or not length.isascii():
            return self._say(411, {"error": "Content-Length is missing"})
        if len(length) > 9 or int(length) > webhook.MAX_BODY_BYTES:
            return self._say(413, {"error": f"at most {webhook.MAX_BODY_BYTES} bytes"})
        body = self.rfile.read(int(length))
        with self.server.turns:
            answer = webhook.receive(
                self.server.store,
                method="POST",
                path=self.path.partition("?")[0],
                headers=dict(self.headers.items()),
                body=body,
            )
        return self._say(answer.status, dict(answer.said))

    def do_GET(self) -> None:
        if self.path == HEALTH:
            return self._say(200, {"status": "ok"})
        is_trigger = self.path.startswith(webhook.PATH)
        return self._say(405 if is_trigger else 404, {"error": f"POST {webhook.PATH}NAME"})

    def _say(self, status: int, said: dict[str, Any]) -> None:
        body = json.dumps(said).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (its name there)
        import logging

        logging.getLogger("sprat").info(format, *args)
