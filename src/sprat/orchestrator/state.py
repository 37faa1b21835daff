"""What one server process holds: the way to the store, and nothing that could not be lost."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from sprat.backend import Backend
from sprat.errors import SpratError
from sprat.orchestrator.keys import Keyring
from sprat.orchestrator.lobby import Lobby
from sprat.orchestrator.metrics import Metrics, Sample
from sprat.orchestrator.options import Options
from sprat.orchestrator.refusal import Refusal
from sprat.orchestrator.threads import Threads
from sprat.orchestrator.worker_secret import Secrets

log = logging.getLogger("sprat.orchestrator")


class State:
    """Made once for each process; every request sees it."""

    def __init__(self, backend: Backend, options: Options) -> None:
        self.backend = backend
        self.options = options
        self.threads = Threads(options.threads)
        self.keys = Keyring(backend)
        self.secrets = Secrets(backend)
        self.lobby = Lobby(backend, self.threads)
        self.metrics = Metrics()
        self.openapi = b""
        self.is_leaving = False  # shutting down: takes no new workers
        self.requests: dict[tuple[str, str, int], int] = {}  # by method, route and status
        self.request_seconds = 0.0
        self._passes: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        if self.options.reap_seconds > 0:
            self._passes.append(asyncio.create_task(self._reap_now_and_then()))

    async def stop(self) -> None:
        self.leave()
        for task in self._passes:
            task.cancel()
        self.threads.close()

    def leave(self) -> None:
        """Begin to shut down: whoever waits goes home, new workers are sent away."""
        self.is_leaving = True
        self.lobby.close()

    def leaving(self) -> Refusal:
        return Refusal(
            503, "shutting_down", "the server is shutting down: try again soon", retry_after=5.0
        )

    def seen(self, route: Any, status: int, seconds: float) -> None:
        """Count one answered request."""
        key = (route.method, route.path, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        self.request_seconds += seconds

    def samples(self) -> list[Sample]:
        """What this process counted itself."""
        counted: list[Sample] = [
            ("http_requests_total", {"method": method, "route": path, "status": str(status)}, n)
            for (method, path, status), n in self.requests.items()
        ]
        return [*counted, ("http_request_seconds_total", {}, self.request_seconds)]

    async def _reap_now_and_then(self) -> None:
        """Dead workers are found even when nobody else looks."""
        while True:
            await asyncio.sleep(self.options.reap_seconds)
            try:
                reaped = await self.threads.run(self.backend.reap, None, None)
                for worker_id in reaped.workers:
                    await self.threads.run(self.lobby.told, worker_id)
            except SpratError as error:
                log.warning("no look for dead workers: %s", error)
