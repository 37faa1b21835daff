"""Where a controller can be asked how it is: /healthz, /readyz and /metrics."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn

from sprat.controller import figures
from sprat.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from sprat.controller.loop import Controller

REQUEST_SECONDS = 5.0  # for somebody to say what they want
MAX_AT_ONCE = 16
PATIENCE_SECONDS = 30.0  # without a good pass for longer, and for three passes: not ready
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Endpoints(ThreadingMixIn, HTTPServer):
    """Answers from `with` to its end."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, controller: Controller, host: str, port: int) -> None:
        self.controller = controller
        self._free = threading.BoundedSemaphore(MAX_AT_ONCE)
        try:
            super().__init__((host, port), _Request)
        except OSError as error:
            raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror}") from error

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, name="endpoints", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

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
    server: Endpoints
    timeout = REQUEST_SECONDS
    server_version = "sprat"
    sys_version = ""

    def do_GET(self) -> None:
        controller = self.server.controller
        path = self.path.partition("?")[0]
        if path == "/healthz":
            is_well = controller.is_alive()
            self._say_json(200 if is_well else 500, {"status": "ok" if is_well else "broken"})
        elif path == "/readyz":
            is_ready = controller.is_ready(PATIENCE_SECONDS)
            sets = [one.as_dict() for one in controller.figures()]
            self._say_json(200 if is_ready else 503, {"ready": is_ready, "scale_sets": sets})
        elif path == "/metrics":
            self._say(200, figures.text(controller.figures()), PROMETHEUS)
        else:
            self._say_json(404, {"error": "GET /healthz, /readyz or /metrics"})

    def do_HEAD(self) -> None:
        self.do_GET()

    def _say_json(self, status: int, said: dict[str, Any]) -> None:
        self._say(status, json.dumps(said) + "\n", "application/json")

    def _say(self, status: int, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (its name there)
        """Probes come every few seconds."""
