"""Every route with every role and tenant, as the OpenAPI document lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from houses import Client, House

from sprat.core.model import WorkerFilter
from sprat.server import openapi, tables
from sprat.server.roles import ROLES
from sprat.server.tenancy import TenantBackend

DOCUMENT = openapi.document(tables.all_routes())
OPERATIONS = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
PROTECTED = [one for one in OPERATIONS if "x-roles" in one[2]]
MARK = "only-for-acme"


def shown(operation: tuple[str, str, Any]) -> str:
    return f"{operation[0]} {operation[1]}"


each = pytest.mark.parametrize("operation", PROTECTED, ids=shown)


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    house = House()
    yield house
    house.close()


class Theirs(NamedTuple):
    """What belongs to the tenant acme."""

    job: str
    worker: str
    reserved: str


@pytest.fixture(scope="module")
def theirs(house: House) -> Theirs:
    pusher, worker = house.client("pusher", "acme"), house.client("worker", "acme")
    job = pusher("POST", "/api/v1/pools/papers/jobs", {"data": MARK, "key": MARK}).body["id"]
    body = {"worker_id": "theirs", "metadata": {"mark": MARK}, "lease_seconds": 86400}
    secret = worker("POST", "/api/v1/pools/papers/workers", body).body["secret"]
    claimed = worker.speaking(secret)("POST", "/api/v1/pools/papers/claim", {"worker_id": "theirs"})
    assert len(claimed.body["jobs"]) == 1
    decision = {
        "pool": "papers",
        "policy": "fixed",
        "direction": "up",
        "current": 1,
        "desired": 2,
        "reason": MARK,
        "launch": 1,
        "max_workers": 5,
        "start_deadline_seconds": 9999,
    }
    controller = house.client("controller", "acme")
    made = controller("POST", "/api/v1/store/record", {"version": 0, "decision": decision})
    return Theirs(job, "theirs", made.body["answer"]["launched"][0])


def body_of(operation: tuple[str, str, Any]) -> Any:
    content = operation[2].get("requestBody", {}).get("content", {})
    return next((one.get("example", {}) for one in content.values()), None)


def send(client: Client, operation: tuple[str, str, Any], **names: str) -> Any:
    path = re.sub(r"{(\w+)}", lambda found: names.get(found[1], "x"), operation[1])
    body = body_of(operation)
    if isinstance(body, str):
        return client(operation[0], path, body.encode(), {"Content-Type": "application/x-ndjson"})
    return client(operation[0], path, body)


@each
def test_without_a_good_key_nobody_gets_in(house: House, operation: tuple[str, str, Any]) -> None:
    port = house.served.port
    good = house.keys["admin", None]
    forged = good[:-4] + ("AAAA" if good[-4:] != "AAAA" else "BBBB")
    for key in (None, "", "sprat_", "nonsense", forged, good.replace("sprat_", "other_")):
        assert send(Client(port, key), operation).status == 401


@each
def test_only_the_roles_that_are_named_get_in(
    house: House, operation: tuple[str, str, Any]
) -> None:
    allowed = {*operation[2]["x-roles"], "admin"}
    for role in ROLES:
        reply = send(house.client(role), operation)
        refused = reply.status == 403 and reply.body["error"] == "wrong_role"
        assert refused == (role not in allowed), (role, reply)


@each
def test_another_tenant_finds_nothing_and_changes_nothing(
    house: House, theirs: Theirs, operation: tuple[str, str, Any]
) -> None:
    before = everything(house)
    stranger = house.client("admin", "umbrella")
    for pool in ("papers", "acme.papers"):
        for worker in (theirs.worker, "acme.theirs", theirs.reserved, f"~{theirs.reserved[1:]}"):
            names = {"pool": pool, "job_id": theirs.job, "worker_id": worker, "tenant_id": "acme"}
            reply = send(stranger, operation, **names)
            assert MARK not in str(reply.body)
            assert reply.status in (*range(200, 500), 503)
            if {"{job_id}", "{worker_id}", "{tenant_id}"} & set(re.findall(r"{\w+}", operation[1])):
                assert reply.status in (404, 422), reply
    assert everything(house) == before


def everything(house: House) -> Any:
    """All there is of acme's."""
    acme = TenantBackend(house.store.backend, "acme")
    workers = acme.workers(WorkerFilter())
    return acme.pools(), acme.items("papers", None, 100, None), workers, acme.pool_state("papers")


IDS = {
    "item": lambda t: {"item_id": t.job},
    "items": lambda t: {"pool": "papers", "limit": 10, "after": t.job},
    "find": lambda t: {"pool": "papers", "which": {"prefix": t.job}, "limit": 2, "after": t.job},
    "cancel": lambda t: {"pool": "papers", "item_ids": [t.job]},
    "requeue": lambda t: {"pool": "papers", "item_ids": [t.job]},
    "save": lambda t: {"claim": {"item_id": t.job, "token": "x"}, "progress": 0.5},
    "exchange": lambda t: {
        "pool": "papers",
        "settlements": [{"item_id": t.job, "token": "x", "outcome": "complete"}],
    },
    "heartbeat": lambda t: {"worker": {"worker_id": "acme.theirs"}, "holding": []},
    "update_status": lambda t: {"worker": {"worker_id": "theirs"}, "status": "terminated"},
    "release": lambda t: {"pool": "acme.papers", "worker_id": "acme.theirs"},
    "worker": lambda t: {"worker_id": "theirs"},
    "workers": lambda t: {"which": {}},
    "pools": lambda t: {},
    "counts": lambda t: {"pool": "acme.papers"},
    "decisions": lambda t: {"pool": "papers", "limit": 10},
    "observe": lambda t: {"pool": "papers", "window": 600},
    "reap": lambda t: {},
    "documents": lambda t: {"kind": "trigger", "limit": 10},
}


@pytest.mark.parametrize("verb", IDS)
def test_another_tenants_ids_are_unknown_to_every_verb(
    house: House, theirs: Theirs, verb: str
) -> None:
    before = everything(house)
    stranger = house.client("admin", "umbrella")
    known = stranger("POST", f"/api/v1/store/{verb}", IDS[verb](theirs))
    unknown = stranger("POST", f"/api/v1/store/{verb}", IDS[verb](Theirs("0" * 28, "theirs", "~x")))
    assert MARK not in str(known.body)
    assert known.status == unknown.status
    assert str(known.body).replace(theirs.job, "") == str(unknown.body).replace("0" * 28, "")
    assert everything(house) == before


def test_metrics_show_a_tenant_its_own_pools_only(house: House, theirs: Theirs) -> None:
    ours = house.client("viewer", "acme")("GET", "/metrics").body
    assert 'sprat_worker_pool_jobs{pool="papers",status="claimed"} 1' in ours
    others = house.client("viewer", "initech")("GET", "/metrics").body
    assert "papers" not in others
    assert "http_requests_total{" not in others
    assert 'pool="acme.papers"' in house.client("viewer")("GET", "/metrics").body


def test_a_token_is_told_to_who_claims_and_to_no_reader(house: House, theirs: Theirs) -> None:
    viewer = house.client("viewer", "acme")
    found = viewer("POST", "/api/v1/store/item", {"item_id": theirs.job}).body["answer"]
    assert (found["status"], found["token"]) == ("claimed", None)
    page = viewer("POST", "/api/v1/store/items", {"pool": "papers", "limit": 10}).body["answer"]
    assert [one["token"] for one in page] == [None]
