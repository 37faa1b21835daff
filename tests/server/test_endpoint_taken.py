"""Another worker at the same endpoint: it is the one that is asked from now on, and the worker that
was there before keeps its jobs and its place in the pool while it gives signs of life."""

from __future__ import annotations

from typing import Any

import pytest
from houses import Client, House
from test_registration import REGISTER, about, running

from sprat.core import model
from sprat.server import endpoint_workers


@pytest.fixture
def victim(house: House, worker: Client) -> Client:
    return worker.speaking(worker("POST", REGISTER, about("victim")).body["secret"])


def claimed(client: Client, worker_id: str = "victim") -> list[Any]:
    reply = client("POST", "/api/v1/pools/backtesting/claim", {"worker_id": worker_id})
    return list(reply.body["jobs"])


def listed(viewer: Client) -> list[str]:
    return [one["worker_id"] for one in viewer("GET", "/api/v1/workers").body["workers"]]


def test_a_worker_whose_endpoint_is_taken_keeps_its_job_and_gets_more(
    house: House, worker: Client, victim: Client, viewer: Client, pusher: Client
) -> None:
    job = running(house, victim, "victim")
    assert worker("DELETE", "/api/v1/workers/deregister/victim").status == 403
    assert worker("POST", REGISTER, about("other", worker_type="u")).status == 200
    assert listed(viewer) == ["other"], "dispatches go to the new one"
    settled = {"settlements": [{"id": job["id"], "token": job["token"]}]}
    assert victim("POST", "/api/v1/pools/backtesting/settle", settled).body["settled"] == [True]
    pusher("POST", "/api/v1/pools/backtesting/jobs", {"data": 2})
    assert [one["data"] for one in claimed(victim)] == [2]


def test_it_gets_its_endpoint_back_with_its_secret(
    house: House, worker: Client, victim: Client, viewer: Client
) -> None:
    job = running(house, victim, "victim")
    worker("POST", REGISTER, about("other"))
    assert viewer("GET", "/api/v1/workers/victim").status == 404
    reply = victim("POST", REGISTER, about("victim", current_operation_id=job["id"]))
    assert reply.body["stop_operations"] == [], "the job is still its own"
    assert listed(viewer) == ["victim"]
    found = viewer("GET", "/api/v1/workers/victim").body
    assert found["endpoint_url"] == about()["endpoint_url"]


def test_it_can_leave_by_itself(worker: Client, victim: Client, house: House) -> None:
    worker("POST", REGISTER, about("other"))
    assert victim("DELETE", "/api/v1/workers/deregister/victim").status == 200
    assert house.store.workers.get("victim").status == model.TERMINATED


def test_without_signs_of_life_it_is_ended_after_a_minute(
    house: House, worker: Client, victim: Client
) -> None:
    job = running(house, victim, "victim")
    worker("POST", REGISTER, about("other"))
    house.now += 40
    victim("POST", "/api/v1/workers/victim/heartbeat", {})
    house.now += 40
    endpoint_workers.end_replaced(house.store.backend)
    assert house.store.get(job["id"]).claimed_by == "victim"
    house.now += 40
    endpoint_workers.end_replaced(house.store.backend)
    assert house.store.workers.get("victim").status == model.TERMINATED
    assert house.store.get(job["id"]).status == "pending", "a crashed worker's job runs again"
    assert house.store.workers.get("other").status == model.ACTIVE


@pytest.mark.parametrize("proof", ["secret", "admin"])
def test_its_secret_or_an_admin_ends_it_at_once(
    house: House, admin: Client, victim: Client, proof: str
) -> None:
    job = running(house, victim, "victim")
    (admin if proof == "admin" else victim)("POST", REGISTER, about("other"))
    assert house.store.workers.get("victim").status == model.TERMINATED
    assert house.store.get(job["id"]).status == "pending"


def test_the_endpoint_that_a_worker_left_is_not_its_own_any_more(
    worker: Client, victim: Client, viewer: Client
) -> None:
    victim("POST", REGISTER, about("victim", 5004))
    worker("POST", REGISTER, about("other"))
    assert listed(viewer) == ["other", "victim"]
