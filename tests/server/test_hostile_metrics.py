"""What a tenant can do to the operator's /metrics: nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from houses import Client, House
from patience import eventually

from sprat.core import jsontext
from sprat.core.model import PoolSettings, Totals

SETTINGS = "/api/v1/pools/papers/settings"
SCRAPES = 40  # more than the server has threads


@pytest.fixture
def acme(house: House) -> Client:
    return house.client("admin", "acme")


@pytest.mark.parametrize(
    "options",
    [
        {"finish_seconds": 1e-9, "cold_start_seconds": 0.0},
        {"finish_seconds": 5e-324},
        {"wait_seconds": 1e-300, "cold_start_seconds": 1e-300},
    ],
    ids=str,
)
def test_a_target_that_nothing_can_meet_is_refused(acme: Client, options: dict[str, Any]) -> None:
    refused = acme("PATCH", SETTINGS, {"settings": {"policy_options": options}})
    assert refused.status == 422
    assert "must be at least 0.001 seconds" in refused.body["message"]


def test_a_start_of_no_time_is_no_division_by_zero(
    house: House, acme: Client, viewer: Client
) -> None:
    options = {"finish_seconds": 60, "cold_start_seconds": 0.0}
    changed = acme("PATCH", SETTINGS, {"settings": {"policy_options": options}})
    assert changed.status == 200
    for _ in range(3):
        acme("POST", "/api/v1/pools/papers/jobs", {"data": 1})
    assert viewer("GET", "/metrics").status == 200
    assert 'sprat_worker_pool_desired_workers{pool="acme.papers"}' in viewer("GET", "/metrics").body
    assert acme("GET", "/api/v1/pools/papers/desired").status == 200


def test_a_pool_whose_policy_fails_lacks_what_it_wants_and_nothing_else(
    house: House, viewer: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Settings that got into the store before they were refused, or past the checks."""
    broken = PoolSettings(policy_options={"wait_seconds": "soon", "cold_start_seconds": 40})
    house.store.backend.configure("acme.papers", jsontext.dumps(broken.as_dict()), None)
    house.store.pool("acme.papers").push(1)
    house.store.pool("fine").push(1)
    reply = viewer("GET", "/metrics")
    assert reply.status == 200
    for pool in ("acme.papers", "fine"):
        assert f'sprat_worker_pool_queue_depth{{pool="{pool}"}} 1' in reply.body
        assert f'sprat_worker_pool_jobs_added_total{{pool="{pool}"}} 1' in reply.body
    assert 'sprat_worker_pool_desired_workers{pool="fine"} 1' in reply.body
    assert 'sprat_worker_pool_desired_workers{pool="acme.papers"}' not in reply.body
    assert "figures are missing of pool acme.papers" in caplog.text
    assert "figures are missing of pool fine" not in caplog.text


@pytest.mark.parametrize("direction", ["sideways", "", "UP"])
def test_a_decision_in_no_direction_is_refused(house: House, direction: str) -> None:
    controller = house.client("controller", "acme")
    asked = {"pool": "papers", "group": None, "window": 60}
    version = controller("POST", "/api/v1/store/observe", asked).body["answer"]["version"]
    decision = {
        "pool": "papers",
        "policy": "x",
        "direction": direction,
        "reason": "r",
        "current": 0,
        "desired": 0,
        "max_workers": 1,
    }
    refused = controller("POST", "/api/v1/store/record", {"version": version, "decision": decision})
    assert refused.status == 422
    assert "one of up, down, hold" in refused.body["message"]
    assert house.client("viewer")("GET", "/metrics").status == 200


def test_scrapes_take_turns_and_leave_other_requests_alone(
    house: House, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many scrapes at once as there are threads, of a tenant whose pools take long to read."""
    house.store.pool("acme.papers").push(1)
    may_end = threading.Event()
    looks = []

    def slow(pool: str) -> Totals:
        looks.append(threading.current_thread().name)
        may_end.wait(60)
        return Totals(arrivals=len(looks))

    monkeypatch.setattr(house.store.backend, "totals", slow)
    scrapes = house.served.state.scrapes
    text, asked = scrapes.text, []

    async def noted(*about: Any) -> bytes:
        asked.append(about)
        return await text(*about)

    monkeypatch.setattr(scrapes, "text", noted)
    tenant = house.client("viewer", "acme")
    with ThreadPoolExecutor(SCRAPES) as threads:
        waiting = [threads.submit(tenant, "GET", "/metrics") for _ in range(SCRAPES)]
        eventually(lambda: len(asked) == SCRAPES and looks)
        assert viewer("GET", "/api/v1/pools?limit=1").status == 200
        assert tenant("GET", "/api/v1/pools/papers").status == 200
        assert not any(one.done() for one in waiting)
        may_end.set()
        replies = [one.result() for one in waiting]
    assert {reply.status for reply in replies} == {200}
    assert len({reply.body for reply in replies}) == 1
    assert looks == ["sprat-metrics_0"]
    assert 'jobs_added_total{pool="papers"} 2' in tenant("GET", "/metrics").body, "a new look"


def test_a_scrape_of_one_tenant_is_not_the_answer_to_another(house: House) -> None:
    house.store.pool("acme.papers").push(1)
    house.store.pool("umbrella.letters").push(1)
    bodies = {
        tenant: house.client("viewer", tenant)("GET", "/metrics").body
        for tenant in ("acme", "umbrella", None)
    }
    assert 'pool="papers"' in bodies["acme"]
    assert "letters" not in bodies["acme"]
    assert "papers" not in bodies["umbrella"]
    assert 'pool="acme.papers"' in bodies[None]
