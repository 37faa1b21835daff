"""Where a controller can be asked how it is: /healthz, /readyz and /metrics."""

from __future__ import annotations

import threading
from typing import Any, Self

from sprat.controller import metrics
from sprat.controller.loop import Controller
from sprat.core.http_listener import BoundedRequest, BoundedServer

REQUEST_SECONDS = 5.0  # for all of a request
MAX_AT_ONCE = 16
PATIENCE_SECONDS = 30.0  # without a good pass for longer, and for three passes: not ready
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Endpoints(BoundedServer):
    """Answers from `with` to its end."""

    def __init__(self, controller: Controller, host: str, port: int) -> None:
        self.controller = controller
        super().__init__(host, port, _Request, at_once=MAX_AT_ONCE)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, name="endpoints", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Request(BoundedRequest):
    server: Endpoints
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:  # noqa: N802  (its name there)
        controller = self.server.controller
        path = self.path.partition("?")[0]
        if path == "/healthz":
            is_well = controller.is_alive()
            self.say_json(200 if is_well else 500, {"status": "ok" if is_well else "broken"})
        elif path == "/readyz":
            is_ready = controller.is_ready(PATIENCE_SECONDS)
            sets = [one.as_dict() for one in controller.metrics()]
            self.say_json(200 if is_ready else 503, {"ready": is_ready, "scale_sets": sets})
        elif path == "/metrics":
            self.say(200, metrics.text(controller.metrics()), PROMETHEUS)
        else:
            self.say_json(404, {"error": "GET /healthz, /readyz or /metrics"})

    def do_HEAD(self) -> None:  # noqa: N802  (its name there)
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (its name there)
        """Probes come every few seconds."""
