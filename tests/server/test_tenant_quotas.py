"""Quotas: one tenant of a server cannot take it from the others."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pytest
from houses import OPTIONS, Client, House, Reply
from patience import eventually

from sprat.core.model import WorkItem
from sprat.server import quotas

JOBS = "/api/v1/pools/papers/jobs"


@pytest.fixture
def pusher(house: House) -> Client:
    return house.client("pusher", "acme")


def test_a_list_of_ids_is_looked_up_in_one_step_without_payloads(
    house: House, pusher: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = pusher("POST", f"{JOBS}/bulk", {"jobs": [{"data": n} for n in range(300)]}).body["ids"]
    backend = house.store.backend
    calls: list[int] = []
    pools_of = backend.pools_of
    monkeypatch.setattr(backend, "item", None)  # would read the payload
    monkeypatch.setattr(backend, "pools_of", lambda ids: calls.append(len(ids)) or pools_of(ids))
    reply = pusher("POST", "/api/v1/pools/papers/cancel", {"ids": ids + ids})
    assert (reply.status, reply.body) == (200, {"changed": 300, "next": None})
    assert calls == [300]


LISTS = {
    "/api/v1/pools/papers/cancel": {"ids": ["x"]},
    "/api/v1/pools/papers/requeue": {"ids": ["x"]},
    "/api/v1/pools/papers/settle": {"settlements": [{"id": "x", "token": "y"}]},
    "/api/v1/workers/w/heartbeat": {"holding": [{"id": "x", "token": "y"}]},
    "/api/v1/store/cancel": {"pool": "papers", "item_ids": ["x"]},
    "/api/v1/store/pools_of": {"item_ids": ["x"]},
    "/api/v1/store/keep_alive": {"worker_ids": ["x"]},
    "/api/v1/store/lost": {"holding": [{"item_id": "x", "token": "y"}]},
    "/api/v1/store/exchange": {
        "pool": "papers",
        "settlements": [{"item_id": "x", "token": "y", "outcome": "complete"}],
    },
}


@pytest.mark.parametrize("path", LISTS)
def test_more_than_a_thousand_ids_in_one_request_are_refused(house: House, path: str) -> None:
    body = {
        name: value * 1001 if isinstance(value, list) else value
        for name, value in LISTS[path].items()
    }
    reply = house.client("admin", "acme")("POST", path, body)
    assert reply.status == 422
    assert "1000" in reply.body["message"].replace(",", "")


def test_slow_requests_of_one_tenant_do_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house, gate = House(OPTIONS.replace(threads=4)), threading.Event()
    backend = house.store.backend
    look = backend.item
    begun: list[str] = []

    def slow(item_id: str) -> WorkItem:
        begun.append(item_id)
        assert gate.wait(30)
        return look(item_id)

    monkeypatch.setattr(backend, "item", slow)
    acme = house.client("pusher", "acme")
    with ThreadPoolExecutor(8) as flood:
        try:
            slow_ones = [flood.submit(acme, "GET", f"{JOBS}/x") for _ in range(8)]
            eventually(lambda: len(begun) == 2)
            assert house.client("pusher", "umbrella")("POST", JOBS, {"data": 1}).status == 200
            assert house.client("viewer")("GET", "/api/v1/pools").status == 200
            assert len(begun) == 2, "half of the threads"
        finally:
            gate.set()
        assert [one.result().status for one in slow_ones] == [404] * 8
    house.close()


def waits(house: House, client: Client, pools: list[str], flood: Executor) -> list[Future[Reply]]:
    """A long poll for each of these pools, once all of them wait."""
    long_polls = house.served.state.long_polls

    def waiting() -> int:
        outside = sum(len(waiters) for waiters in list(long_polls._unwatched.values()))
        return outside + sum(
            len(watcher.waiters()) for watcher in list(long_polls._watchers.values())
        )

    before = waiting()
    bodies = [{"pool": pool, "worker": None, "seconds": 30} for pool in pools]
    sent = [flood.submit(client, "POST", "/api/v1/store/wait", body) for body in bodies]
    eventually(lambda: waiting() == before + len(pools))
    return sent


def test_waiting_for_pools_that_do_not_exist_costs_no_thread(house: House) -> None:
    long_polls = house.served.state.long_polls
    with ThreadPoolExecutor(20) as flood:
        try:
            sent = waits(house, house.client("worker", "acme"), [f"x{n}" for n in range(20)], flood)
            assert not long_polls._watchers
            assert house.client("pusher", "acme")("POST", JOBS.replace("papers", "x7"), {"data": 1})
            assert sent[7].result(10).body == {"answer": True}, "a push creates the pool"
        finally:
            long_polls.close()
        assert sum(one.result(10).body["answer"] for one in sent) == 1


def test_one_tenant_has_a_bounded_number_of_watchers(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "MAX_WATCHERS", 2)
    long_polls = house.served.state.long_polls
    pools = [f"p{n}" for n in range(4)]
    for name in [*(f"acme.{pool}" for pool in pools), "umbrella.papers"]:
        house.store.pool(name).resume()
    with ThreadPoolExecutor(5) as flood:
        try:
            sent = waits(house, house.client("worker", "acme"), pools, flood)
            assert len(long_polls._watchers) == 2
            waits(house, house.client("worker", "umbrella"), ["papers"], flood)
            assert "umbrella.papers" in long_polls._watchers
            push = house.client("pusher", "acme")
            for pool in pools:
                assert push("POST", f"/api/v1/pools/{pool}/jobs", {"data": 1}).status == 200
            assert all(one.result(10).body["answer"] for one in sent), "with a watcher or without"
        finally:
            long_polls.close()


def test_heartbeats_do_not_let_metadata_grow_without_bound(house: House) -> None:
    worker = house.client("worker", "acme")
    secret = worker("POST", "/api/v1/pools/papers/workers", {"worker_id": "m"}).body["secret"]
    me = worker.speaking(secret)
    beat = "/api/v1/workers/m/heartbeat"
    sent = [me("POST", beat, {"metadata": {f"k{n}": "x" * 20_000}}).status for n in range(5)]
    assert sent == [200, 200, 200, 422, 422]
    assert me("POST", beat, {}).status == 200
    verb = {"worker": {"worker_id": "m"}, "metadata": json.dumps({"z": "x" * 70_000})}
    assert me("POST", "/api/v1/store/heartbeat", {**verb, "holding": []}).status == 422


@pytest.mark.parametrize("path", ["/api/v1/pools/papers/workers", "/api/v1/workers/register"])
def test_a_worker_with_too_many_capabilities_is_refused(house: House, path: str) -> None:
    body: dict[str, object] = {"worker_id": "m", "capabilities": [f"c{n}" for n in range(101)]}
    if path.endswith("register"):
        body |= {"worker_type": "papers", "endpoint_url": "http://10.0.0.1:5003"}
    reply = house.client("worker", "acme")("POST", path, body)
    assert (reply.status, reply.body["error"]) == (422, "invalid_input")


def test_a_tenant_has_a_bounded_number_of_pools(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "MAX_POOLS", 2)
    admin = house.client("admin", "acme")
    creating = {
        "push": {"items": [{"id": "x", "data": "1"}]},
        "configure": {"settings": "{}"},
        "pause": {"seconds": 1},
        "hold_off": {"seconds": 1},
    }
    for n in range(2):
        assert admin("POST", f"/api/v1/pools/p{n}/jobs", {"data": 1}).status == 200
    for verb, arguments in creating.items():
        reply = admin("POST", f"/api/v1/store/{verb}", {"pool": "p2", **arguments})
        assert (reply.status, reply.body["error"]) == (422, "invalid_input"), verb
        assert "at most 2 pools" in reply.body["message"]
    assert admin("POST", "/api/v1/pools/p2/jobs", {"data": 1}).status == 422
    assert admin("POST", "/api/v1/pools/p1/jobs", {"data": 1}).status == 200, "it exists"
    for other in (house.client("pusher", "umbrella"), house.client("pusher")):
        assert other("POST", "/api/v1/pools/p2/jobs", {"data": 1}).status == 200
    assert house.store.pools() == ["acme.p0", "acme.p1", "p2", "umbrella.p2"]


def test_a_tenant_has_a_bounded_number_of_endpoints(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "MAX_ENDPOINTS", 2)
    worker = house.client("worker", "acme")

    def register(number: int, client: Client = worker) -> Reply:
        url = f"https://10.0.0.1:5003/{number}"
        about = {"worker_id": f"w{number}", "worker_type": "papers", "endpoint_url": url}
        return client("POST", "/api/v1/workers/register", about)

    secrets = [register(n).body["secret"] for n in range(2)]
    assert register(2).status == 422
    assert "at most 2 workers with an endpoint" in register(2).body["message"]
    assert register(1, worker.speaking(secrets[1])).status == 200, "the same again"
    assert register(1).status == 200, "after a restart"
    assert register(2, house.client("worker", "umbrella")).status == 200
    assert worker.speaking(secrets[0])("DELETE", "/api/v1/workers/deregister/w0").status == 200
    assert register(2).status == 200


def test_the_long_polls_of_one_tenant_leave_connections_to_the_others() -> None:
    house = House(OPTIONS.replace(max_connections=8))
    house.store.pool("acme.papers").resume()
    acme = house.client("worker", "acme")
    with ThreadPoolExecutor(4) as flood:
        try:
            waits(house, acme, ["papers"] * 4, flood)
            body = {"pool": "papers", "worker": None, "seconds": 30}
            reply = acme("POST", "/api/v1/store/wait", body)
            assert (reply.status, reply.headers["retry-after"]) == (429, "1")
            assert "4 requests under way" in reply.body["message"]
            assert house.client("pusher", "umbrella")("POST", JOBS, {"data": 1}).status == 200
            assert house.client("viewer")("GET", "/api/v1/pools").status == 200
        finally:
            house.served.state.long_polls.close()
    assert acme("POST", "/api/v1/store/pools", {}).status == 200, "they are over"
    house.close()


def test_an_id_that_another_tenant_has_is_another_job(house: House) -> None:
    mine = house.client("pusher", "acme")
    theirs = house.client("pusher", "umbrella")

    def push(client: Client, item_id: str, data: str) -> str:
        body = {"pool": "papers", "items": [{"id": item_id, "data": data}]}
        (made,) = client("POST", "/api/v1/store/push", body).body["answer"]
        return str(made)

    first = push(mine, "same", "1")
    assert push(mine, "same", "1") == first, "a push may be repeated"
    for item_id in ("same", first, "free"):
        made = push(theirs, item_id, "2")
        assert theirs("GET", f"{JOBS}/{made}").body["data"] == 2
    assert mine("GET", f"{JOBS}/{first}").body["data"] == 1
    assert len(mine("GET", JOBS).body["jobs"]) == 1


ODD = {
    "a push of nothing": ("push", {"pool": "papers", "items": []}),
    "a tiny rate": ("take", {"name": "b", "amount": 1e9, "rate": 1e-300, "burst": 1}),
    "the smallest rate": ("take", {"name": "b", "amount": 1e9, "rate": 5e-324, "burst": 1e9}),
    "a tiny burst": ("take", {"name": "b", "amount": 1, "rate": 1e9, "burst": 1e-300}),
    "a rate of nothing": ("take", {"name": "b", "amount": 1, "rate": 0, "burst": 1}),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_arguments_are_refused_in_a_sentence(house: House, name: str) -> None:
    verb, body = ODD[name]
    reply = house.client("admin", "acme")("POST", f"/api/v1/store/{verb}", body)
    assert (reply.status, reply.body["error"]) == (422, "invalid_input")
    largest = {"name": "b", "amount": 1e9, "rate": 1e-6, "burst": 1e-6}
    assert house.client("admin", "acme")("POST", "/api/v1/store/take", largest).status == 200
