"""What belongs to another tenant, or to another worker, cannot be told from what does not exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from houses import House, Reply

JOBS = "/api/v1/pools/papers/jobs"
REGISTER = "/api/v1/workers/register"


class Attacker:
    """Every role of one tenant, and a worker of its own."""

    def __init__(self, house: House) -> None:
        self.admin = house.client("admin", "umbrella")
        self.worker = house.client("worker", "umbrella")
        made = self.worker("POST", "/api/v1/pools/papers/workers", {"worker_id": "w"})
        self.me = self.worker.speaking(made.body["secret"])

    def verb(self, name: str, **body: Any) -> Reply:
        return self.me("POST", f"/api/v1/store/{name}", body)


WAYS: dict[str, Callable[[Attacker, str], Reply]] = {
    "read": lambda a, i: a.admin("GET", f"{JOBS}/{i}"),
    "read as a worker": lambda a, i: a.verb("item", item_id=i),
    "cancel": lambda a, i: a.admin("POST", "/api/v1/pools/papers/cancel", {"ids": [i]}),
    "requeue": lambda a, i: a.admin("POST", "/api/v1/pools/papers/requeue", {"ids": [i]}),
    "settle": lambda a, i: a.me(
        "POST", "/api/v1/pools/papers/settle", {"settlements": [{"id": i, "token": "t"}]}
    ),
    "exchange": lambda a, i: a.me(
        "POST",
        "/api/v1/pools/papers/exchange",
        {"worker_id": "w", "settlements": [{"id": i, "token": "t"}], "count": 0},
    ),
    "start": lambda a, i: a.verb(
        "exchange", pool="papers", worker={"worker_id": "w"}, start={"item_id": i, "token": "t"}
    ),
    "progress": lambda a, i: a.me("POST", f"{JOBS}/{i}/progress", {"token": "t", "progress": 0.5}),
    "result": lambda a, i: a.me("POST", "/work/result", {"work_id": i, "token": "t"}),
    "heartbeat": lambda a, i: a.me(
        "POST", "/api/v1/workers/w/heartbeat", {"holding": [{"id": i, "token": "t"}]}
    ),
    "list after": lambda a, i: a.admin("GET", f"{JOBS}?after={i}"),
    "register": lambda a, i: a.worker(
        "POST",
        REGISTER,
        {
            "worker_id": "e",
            "worker_type": "papers",
            "endpoint_url": "http://10.0.0.1",
            "current_operation_id": i,
            "completed_operations": [{"operation_id": i}],
        },
    ),
    "pools_of": lambda a, i: a.verb("pools_of", item_ids=[i]),
    "recover": lambda a, i: a.verb("recover", pool="papers", worker={"worker_id": "w"}, known=[i]),
    "release": lambda a, i: a.admin(
        "POST", "/api/v1/store/release", {"pool": "papers", "worker_id": "w", "started": [i]}
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_job_of_another_tenant_is_as_unknown_as_one_that_is_not(house: House, way: str) -> None:
    attacker = Attacker(house)
    job = house.client("pusher", "acme")("POST", JOBS, {"data": "secret"}).body["id"]
    invented = job[:-4] + ("ffff" if job[-4:] != "ffff" else "0000")
    before = house.store.backend.item(job)
    shown = []
    for item_id in (job, invented):
        reply = WAYS[way](attacker, item_id)
        body = {k: v for k, v in reply.body.items() if k not in ("secret", "worker")}
        shown.append((reply.status, str(body).replace(item_id, "ID")))
    assert shown[0] == shown[1]
    assert house.store.backend.item(job) == before


NAMES = ("acme.w1", "~acme.w1", "../acme.w1", "~op", "acme.w1\0", "ACME.w1", ".acme.w1")


@pytest.mark.parametrize("name", NAMES)
def test_no_spelling_reaches_a_worker_of_another_tenant(house: House, name: str) -> None:
    house.client("worker", "acme")("POST", "/api/v1/pools/papers/workers", {"worker_id": "w1"})
    house.client("worker")("POST", "/api/v1/pools/papers/workers", {"worker_id": "op"})
    stranger = house.client("admin", "umbrella")
    path = quote(name, safe="")
    for method, where in (("GET", ""), ("POST", "/drain"), ("DELETE", "")):
        route = f"deregister/{path}" if method == "DELETE" else f"{path}{where}"
        assert stranger(method, f"/api/v1/workers/{route}").status in (404, 422)
    for worker_id in ("acme.w1", "op"):
        assert house.store.workers.get(worker_id).status == "active"


@pytest.mark.parametrize("name", ["acme.papers", "..", "../acme.papers", "ACME.papers", "papers\n"])
def test_no_spelling_reaches_a_pool_of_another_tenant(house: House, name: str) -> None:
    house.client("pusher", "acme")("POST", JOBS, {"data": "secret"})
    reply = house.client("admin", "umbrella")("GET", f"/api/v1/pools/{quote(name, safe='')}/jobs")
    assert reply.status in (404, 422) or reply.body == {"jobs": [], "next": None}


def test_a_result_needs_the_token_of_its_claim(house: House) -> None:
    """With a key of the same tenant: no guess, and no worker id that is taken over, settles."""
    worker = house.client("worker", "acme")
    job = house.client("pusher", "acme")("POST", JOBS, {"data": 1}).body["id"]
    made = worker("POST", "/api/v1/pools/papers/workers", {"worker_id": "victim"}).body
    victim = worker.speaking(made["secret"])
    victim("POST", "/api/v1/pools/papers/claim", {"worker_id": "victim"})
    guess = {"settlements": [{"id": job, "token": "guess"}]}
    assert worker("POST", "/api/v1/pools/papers/settle", guess).body["settled"] == [False]
    taken = {
        "worker_id": "victim",
        "worker_type": "papers",
        "endpoint_url": "http://10.0.0.1",
        "completed_operations": [{"operation_id": job, "result": "forged"}],
    }
    first = worker("POST", REGISTER, taken).body
    assert first["settled_operations"] == []
    again = worker.speaking(first["secret"])("POST", REGISTER, taken).body
    assert again["settled_operations"] == []
    item = house.store.backend.item(job)
    assert (item.status, item.result) == ("pending", None), "handed back"
    assert victim("POST", "/api/v1/workers/victim/heartbeat", {}).body["status"] == "lost"
