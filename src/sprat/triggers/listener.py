"""A small HTTP listener for webhooks: standard library, a bounded number of threads, bodies and
seconds. For the open internet put a proxy with TLS in front of it."""

from __future__ import annotations

import threading
from typing import Any

from sprat.core.http_listener import BoundedRequest, BoundedServer
from sprat.store.store import Store
from sprat.triggers import webhook

MAX_AT_ONCE = 32
PASSES_AT_ONCE = 4  # requests that fire at the same time; the others wait for their turn
HEALTH = "/health"


class WebhookListener(BoundedServer):
    """Serves `POST /triggers/NAME` and `GET /health` until `shutdown`."""

    def __init__(self, store: Store, host: str, port: int) -> None:
        self.store = store
        self.turns = threading.BoundedSemaphore(PASSES_AT_ONCE)
        super().__init__(host, port, _Request, at_once=MAX_AT_ONCE)


class _Request(BoundedRequest):
    server: WebhookListener

    def do_POST(self) -> None:  # noqa: N802  (its name there)
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or not length.isascii():
            return self.say_json(411, {"error": "Content-Length is missing"})
        if len(length) > 9 or int(length) > webhook.MAX_BODY_BYTES:
            return self.say_json(413, {"error": f"at most {webhook.MAX_BODY_BYTES} bytes"})
        body = self.rfile.read(int(length))
        self.server.has_read(self.connection)
        with self.server.turns:
            answer = webhook.receive(
                self.server.store,
                method="POST",
                path=self.path.partition("?")[0],
                headers=dict(self.headers.items()),
                body=body,
            )
        return self.say_json(answer.status, dict(answer.said))

    def do_GET(self) -> None:  # noqa: N802  (its name there)
        if self.path == HEALTH:
            return self.say_json(200, {"status": "ok"})
        is_trigger = self.path.startswith(webhook.PATH)
        return self.say_json(405 if is_trigger else 404, {"error": f"POST {webhook.PATH}NAME"})

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (its name there)
        import logging

        logging.getLogger("sprat").info(format, *args)
