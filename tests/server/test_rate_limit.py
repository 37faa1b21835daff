"""GLOBAL_QPS_LIMIT: which requests it counts, and what goes through all the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from houses import OPTIONS, Client, House

from sprat.server import tables
from sprat.server.tenancy import TenantBackend
from sprat.store.backend import PROTOCOL

SECURITY = Path(__file__).parents[2] / "docs" / "security.md"
COUNTED: dict[str, tuple[str, str, Any]] = {
    "/api/v1/pools/papers/workers": ("worker", "POST", {"worker_id": "w"}),
    "/api/v1/store/register": ("worker", "POST", {"worker": {"worker_id": "w"}}),
    "/api/v1/workers/register": (
        "worker",
        "POST",
        {"worker_id": "w", "worker_type": "t", "endpoint_url": "http://10.0.0.1"},
    ),
    "/api/v1/store/wait": ("worker", "POST", {"pool": "papers", "seconds": 0}),
    "/api/v1/store/recover": ("worker", "POST", {"pool": "papers", "worker": {"worker_id": "w"}}),
    "/metrics": ("viewer", "GET", None),
    "/queue/metrics": ("viewer", "GET", None),
    "/api/v1/pools/papers/desired": ("viewer", "GET", None),
    "/api/v1/pools/papers/exchange": ("worker", "POST", {"worker_id": "w"}),
    "/api/v1/store/exchange": ("worker", "POST", {"pool": "papers", "claim": 1}),
    "/api/v1/store/push": (
        "pusher",
        "POST",
        {"pool": "papers", "items": [{"id": "x", "data": "1"}]},
    ),
}


@pytest.fixture
def house() -> Iterator[House]:
    """The store's clock stands still: nothing comes back into the bucket."""
    house = House(OPTIONS.replace(qps=3.0))
    yield house
    house.close()


def spend(house: House) -> None:
    viewer = house.client("viewer", "initech")
    while viewer("GET", "/api/v1/pools").status != 429:
        pass


@pytest.mark.parametrize("path", COUNTED)
def test_a_request_beyond_the_limit_is_refused(house: House, path: str) -> None:
    spend(house)
    role, method, body = COUNTED[path]
    reply = house.client(role, "acme")(method, path, body, {"Sprat-Protocol": PROTOCOL})
    assert (reply.status, reply.body["error"]) == (429, "too_many")
    assert house.store.pools() == []


def test_what_runs_goes_on_beyond_the_limit_and_nothing_new_is_claimed(house: House) -> None:
    acme = TenantBackend(house.store.backend, "acme")
    house.store.pool("acme.papers").push_many([1, 2, 3])
    worker = house.client("worker", "acme")
    about = {"worker_id": "w", "lease_seconds": 600}
    secret = worker("POST", "/api/v1/pools/papers/workers", about).body["secret"]
    me = worker.speaking(secret)
    jobs = me("POST", "/api/v1/pools/papers/claim", {"worker_id": "w", "count": 2}).body["jobs"]
    one, two = ({"id": job["id"], "token": job["token"]} for job in jobs)
    spend(house)
    assert me("POST", "/api/v1/workers/w/heartbeat", {"holding": [one]}).status == 200
    progress = {"token": one["token"], "progress": 0.5}
    path = f"/api/v1/pools/papers/jobs/{one['id']}/progress"
    assert me("POST", path, progress).body == {"held": True}
    ended = me("POST", "/api/v1/pools/papers/exchange", {"worker_id": "w", "settlements": [one]})
    assert (ended.status, ended.body) == (200, {"settled": [True], "jobs": []})
    verb = {
        "pool": "papers",
        "worker": {"worker_id": "w"},
        "settlements": [{"item_id": two["id"], "token": two["token"], "outcome": "complete"}],
        "claim": 1,
    }
    answer = me("POST", "/api/v1/store/exchange", verb).body["answer"]
    assert (answer["settled"], answer["items"]) == ([True], [])
    counts = acme.counts("papers")
    assert (counts.done, counts.pending, counts.claimed) == (2, 1, 0)
    house.now += 1.0
    assert len(me("POST", "/api/v1/store/exchange", verb).body["answer"]["items"]) == 1


def test_the_list_of_requests_that_are_not_counted_is_documented() -> None:
    listed = SECURITY.read_text().partition("not counted:")[2].partition("\n\n")[0]
    free = {
        route.path for route in tables.all_routes() if not route.limited and route.roles is not None
    }
    open_to_all = {route.path for route in tables.all_routes() if route.roles is None}
    assert set(re.findall(r"`(/[^`]*)`", listed)) == free | open_to_all


def test_a_flood_of_readiness_checks_does_not_reach_the_store(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    document = house.store.backend.document
    monkeypatch.setattr(
        house.store.backend, "document", lambda *which: looks.append("look") or document(*which)
    )
    monkeypatch.setattr("sprat.server.routes.service.READY_SECONDS", 3600.0)
    ask = Client(house.served.port)
    assert [ask("GET", "/readyz").status for _ in range(20)] == [200] * 20
    assert looks == ["look"]


def test_no_tenant_has_the_bucket_of_all(house: House) -> None:
    for name in (":global_qps", "global_qps", "sprat.global_qps"):
        body = {"name": name, "amount": 3, "rate": 3, "burst": 3}
        house.client("admin", "acme")("POST", "/api/v1/store/take", body)
        house.now += 1.0
        assert house.client("viewer")("GET", "/api/v1/pools").status == 200
