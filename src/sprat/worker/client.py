"""For workers of your own: register with an orchestrator, say how you are, report what is done.

docs/recipes/own-worker.md has a whole worker; `sprat work --serve` uses the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sprat.core import jsontext, payload, percent_encoding
from sprat.core.errors import InvalidInput, StoreUnavailable, UnknownWorker
from sprat.core.runtime import runtime
from sprat.worker import health

LONGEST_PAUSE_SECONDS = 30.0
STATUSES = ("completed", "failed", "cancelled", "transient", "poisoned")


def pause_after(failures: int) -> float:
    """How long to wait after so many failed registrations in a row: 1, 2, 4 ... 30 s. Pure."""
    return min(LONGEST_PAUSE_SECONDS, 2.0 ** min(failures - 1, 10))


class Routes:
    """Calls the routes of an orchestrator, over connections that are kept."""

    def __init__(self, url: str) -> None:
        """The API key is in SPRAT_API_KEY, as for every command."""
        from sprat.store.http.address import read
        from sprat.store.http.connection import Connections

        if not url.startswith(("http://", "https://")):
            raise InvalidInput(f"{url!r} is no orchestrator: write https://host:port")
        self._connections = Connections(read(url))
        self._secret: str | None = None

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Any route (docs/reference/routes.md), with the key, and with a worker's secret if
        there is one. It is tried once: only the caller knows whether it may be repeated."""
        if not path.isascii() or not path.isprintable() or " " in path:
            raise InvalidInput(f"{path!r} is no path: write its odd characters with % (%20)")
        content = "" if body is None else jsontext.dumps(body)
        return self._connections.once(method, path, content, self._secret)


class Client(Routes):
    """One worker, as an orchestrator knows it. Not to be shared between threads."""

    def __init__(
        self,
        url: str,
        *,
        worker_id: str,
        worker_type: str,
        endpoint_url: str,
        capabilities: Mapping[str, Any] | None = None,
    ) -> None:
        """The API key is in SPRAT_API_KEY, as for every command."""
        super().__init__(url)
        self._about = {
            "worker_id": worker_id,
            "worker_type": worker_type,
            "endpoint_url": endpoint_url,
            "capabilities": dict(capabilities or {}),
        }
        self._path = percent_encoding.quoted(worker_id)
        self._unreported: list[dict[str, Any]] = []
        self.operation: str | None = None  # what it is working on

    def health(self) -> dict[str, str | None]:
        """The answer to `GET {endpoint_url}/health`."""
        return health.answer(self.operation)

    def finish(
        self,
        operation_id: str,
        *,
        result: object = None,
        error: object = None,
        status: str | None = None,
        token: str | None = None,
    ) -> None:
        """Keep how an operation ended, for a report with the next registration.

        `status` is completed, failed, cancelled, transient (the attempt is not charged) or poisoned
        (no further attempt); without it, an `error` (a text or an exception) means failed. `token`
        proves the claim where the worker's secret does not. Raises InvalidInput for what a server
        would refuse: one such report would block every registration.

            me.finish(job["id"], error=exception)
        """
        ended = status or ("completed" if error is None else "failed")
        if ended not in STATUSES:
            names = f"{', '.join(STATUSES[:-1])} or {STATUSES[-1]}"
            raise InvalidInput(f"the status {ended!r} is no end of an operation: use {names}")
        report = {"operation_id": operation_id, "status": ended, "token": token}
        self._unreported.append({**report, **_detail(ended, result, error)})
        if self.operation == operation_id:
            self.operation = None

    def register(self) -> list[str]:
        """Register, now or again, and report what is finished; the operations to stop. Nothing
        is forgotten before it was heard."""
        reported = list(self._unreported)
        now = {"current_operation_id": self.operation, "completed_operations": reported}
        told = self.call("POST", "/api/v1/workers/register", {**self._about, **now})
        self._secret = told["secret"]
        del self._unreported[: len(reported)]
        return list(told["stop_operations"])

    def register_in_time(self, sleep: Callable[[float], object] = runtime.sleep) -> list[str]:
        """The same, for as long as it takes; only what no waiting mends is an error."""
        failures = 0
        while True:
            try:
                return self.register()
            except StoreUnavailable:
                failures += 1
                sleep(pause_after(failures))

    def is_known(self) -> bool:
        """Whether the orchestrator still knows this worker; if not, register again."""
        try:
            return bool(self.call("GET", f"/api/v1/workers/{self._path}"))
        except UnknownWorker:
            return False

    def deregister(self) -> None:
        """Leave; what it holds is handed back."""
        self.call("DELETE", f"/api/v1/workers/deregister/{self._path}")


def _detail(status: str, result: object, error: object) -> dict[str, Any]:
    """What a report has besides its status: a result, or an error."""
    if status != "completed":
        return {"error": payload.error_text(error)}
    if error is not None:
        raise InvalidInput("an operation has completed or has an error, not both")
    return {"result": jsontext.loads(payload.encode(result, "result"))}
