"""`sprat.worker.client`: how a worker of its own making reports the end of an operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from servers.orchestrator import OPEN, Served

from sprat.core import model
from sprat.core.errors import InvalidInput
from sprat.store.memory.backend import MemoryBackend
from sprat.store.store import Store
from sprat.worker import endpoint_worker
from sprat.worker.client import Client


class Own:
    """A worker that has registered and claimed a job with one attempt."""

    def __init__(self) -> None:
        self.store = Store(MemoryBackend())
        self.served = Served(self.store, OPEN)
        url = "http://127.0.0.1:1"
        self.client = Client(self.served.url, worker_id="w", worker_type="own", endpoint_url=url)
        self.item = self.store.pool("own").push(1, max_retries=1)
        self.client.register()
        claimed = self.client.call("POST", "/api/v1/pools/own/claim", {"worker_id": "w"})
        self.token = claimed["jobs"][0]["token"]

    def stored(self) -> tuple[str, Any, str | None]:
        """The job after the next registration."""
        self.client.register()
        item = self.store.get(self.item)
        return item.status, item.result, item.error


@pytest.fixture
def own() -> Iterator[Own]:
    own = Own()
    yield own
    own.served.stop()
    own.served.join()


@pytest.mark.parametrize(
    ("how", "stored"),
    [
        ({"result": {"n": 2}}, ("done", {"n": 2}, None)),
        ({"error": "no disk"}, ("poisoned", None, "no disk")),
        ({"error": ValueError("no disk")}, ("poisoned", None, "no disk")),
        ({"status": "cancelled"}, ("cancelled", None, None)),
        ({"status": "transient", "error": "throttled"}, ("pending", None, "throttled")),
    ],
)
def test_an_operation_is_reported_as_it_ended(own: Own, how: Any, stored: Any) -> None:
    own.client.finish(own.item, **how)
    assert own.stored() == stored


@pytest.mark.parametrize("error", [None, ""])
def test_a_failure_without_a_text_is_reported_as_a_failure(own: Own, error: str | None) -> None:
    own.client.finish(own.item, status="failed", error=error)
    assert own.stored()[0] == "poisoned"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"status": "running"}, "use completed, failed, cancelled, transient or poisoned"),
        ({"status": "completed", "error": "boom"}, "not both"),
        ({"result": object()}, "result"),
    ],
)
def test_what_no_server_takes_is_refused_before_it_blocks_registrations(
    own: Own, how: Any, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        own.client.finish(own.item, **how)
    assert own.stored()[0] == "claimed"


@pytest.mark.parametrize(
    ("outcome", "error", "status"),
    [
        (model.COMPLETE, None, "done"),
        (model.FAIL, None, "poisoned"),
        (model.FAIL, "", "poisoned"),
        (model.POISON, "wrong input", "poisoned"),
        (model.TRANSIENT, "throttled", "pending"),
        (model.HAND_BACK, None, "claimed"),
    ],
)
def test_a_serving_worker_reports_every_outcome(
    own: Own, outcome: str, error: str | None, status: str
) -> None:
    ended = model.Settlement(item_id=own.item, token=own.token, outcome=outcome, error=error)
    endpoint_worker._report(own.client, [ended])
    assert own.stored()[0] == status
