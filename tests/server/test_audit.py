"""The audit log: admins leave entries in it, and nothing over HTTP takes them away or invents them.

Which documents are open over HTTP, and to which role, is tested here too: the log is one of the
others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from houses import Client, House

from sprat.server import audit
from sprat.server.open_documents import KINDS
from sprat.server.tenancy import TenantBackend
from sprat.triggers import registry
from sprat.triggers.tick import tick

STORE = "/api/v1/store"
CLOSED = ["audit", "api_key", "server_key", "health", "endpoint", "turns", "monitor", "scale_set"]
CLOSED += ["acme.audit", "acme.trigger", "anything"]
YEARS = 10 * 365 * 86400.0


def put(client: Client, kind: str, name: str, body: object, **more: Any) -> Any:
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    return client("POST", f"{STORE}/put", {"kind": kind, "name": name, "body": text, **more})


def acts(client: Client) -> list[tuple[str, str]]:
    return [(one["act"], one["subject"]) for one in client("GET", "/api/v1/audit").body["acts"]]


def trigger(name: str = "planted", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "cron", "schedule": "* * * * *", "command": ["/bin/true"], **more}


@pytest.mark.parametrize("tenant", [None, "acme"])
def test_entries_can_be_neither_erased_nor_forged_nor_hidden(
    house: House, tenant: str | None
) -> None:
    admin = house.client("admin", tenant)
    admin("PATCH", "/api/v1/pools/p/settings", {"settings": {"command": ["/bin/true"]}})
    before = admin("GET", "/api/v1/audit").body
    (entry,) = before["acts"]
    forged = {"act": "purge", "subject": "p", "key": "innocent", "at": 1.0}
    for name, body in ((entry["id"], None), (entry["id"], forged), ("0", forged), ("1", "odd")):
        assert put(admin, "audit", name, body).status == 404
    assert admin("GET", "/api/v1/audit").body == before


@pytest.mark.parametrize("kind", CLOSED)
def test_the_servers_own_documents_do_not_exist_over_http(house: House, kind: str) -> None:
    inner = house.store.backend
    for tenant, part in ((None, inner), ("acme", TenantBackend(inner, "acme"))):
        part.put(kind, "x", '"kept"', None, None)
        admin = house.client("admin", tenant)
        assert put(admin, kind, "x", "1").status == 404
        assert put(admin, kind, "x", None).status == 404
        assert admin("POST", f"{STORE}/document", {"kind": kind, "name": "x"}).status == 404
        assert admin("POST", f"{STORE}/documents", {"kind": kind, "limit": 9}).status == 404
        kept = part.document(kind, "x")
        assert kept is not None
        assert kept.body == '"kept"'


@pytest.mark.parametrize("kind", KINDS)
def test_open_documents_are_open_to_the_roles_in_the_list(house: House, kind: str) -> None:
    body = {"trigger": trigger("x"), "trigger-due": 1.0}.get(kind, {})
    for role in ("worker", "pusher", "controller", "viewer", "admin"):
        client = house.client(role)
        may_read = role == "admin" or role in KINDS[kind].readers
        read = client("POST", f"{STORE}/document", {"kind": kind, "name": "x"})
        assert (read.status == 200) == may_read, (role, read)
        may_write = role == "admin" or role in KINDS[kind].routine
        assert (put(client, kind, "x", body).status == 200) == may_write, role


def test_an_entry_that_cannot_be_read_hides_no_other(house: House, admin: Client) -> None:
    for number in range(3):
        house.store.backend.put(audit.KIND, f"0{number}", ("odd", "[]", "{}")[number], None, None)
        admin("POST", f"/api/v1/pools/p{number}/resume")
    first = admin("GET", "/api/v1/audit?limit=2").body
    assert [one["subject"] for one in first["acts"]] == ["p0", "p1"]
    rest = admin("GET", f"/api/v1/audit?limit=2&after={first['next']}").body
    assert ([one["subject"] for one in rest["acts"]], rest["next"]) == (["p2"], None)


VERBS = [
    ("configure", {"pool": "p", "settings": "{}"}, ("configure", "p")),
    ("pause", {"pool": "p", "seconds": 5}, ("pause", "p")),
    ("hold_off", {"pool": "p", "seconds": 5}, ("hold_off", "p")),
    ("purge", {"pool": "p", "limit": 5}, ("purge", "p")),
    ("delete_pool", {"pool": "p", "limit": 5}, ("delete_pool", "p")),
    ("release", {"pool": "p", "worker_id": "w"}, ("release", "p")),
    ("take", {"name": "b", "amount": 1, "rate": 1, "burst": 1}, ("take", "b")),
    ("put", {"kind": "scaling", "name": "p/", "body": "{}"}, ("put", "scaling p/")),
    ("put", {"kind": "trigger-due", "name": "x", "body": "1"}, ("put", "trigger-due x")),
    ("reap", {"pool": "p", "threshold": 1}, ("reap", "p")),
    (
        "update_status",
        {"worker": {"worker_id": "w"}, "status": "terminating"},
        ("update_status", "w terminating"),
    ),
]


@pytest.mark.parametrize(("verb", "body", "entry"), VERBS, ids=lambda one: str(one)[:24])
def test_what_an_admin_changes_through_a_verb_is_in_the_log(
    house: House, admin: Client, verb: str, body: Any, entry: tuple[str, str]
) -> None:
    house.client("worker")("POST", "/api/v1/pools/p/workers", {"worker_id": "w"})
    assert admin("POST", f"{STORE}/{verb}", body).status == 200
    assert acts(admin) == [entry]


def test_draining_and_deregistering_others_is_in_the_log(
    house: House, admin: Client, worker: Client, controller: Client
) -> None:
    for name in ("a", "b"):
        about = {"worker_id": name, "worker_type": "t", "endpoint_url": f"http://10.0.0.1/{name}"}
        worker("POST", "/api/v1/workers/register", about)
    controller("POST", "/api/v1/workers/a/drain")
    admin("DELETE", "/api/v1/workers/deregister/b")
    assert acts(admin) == [("drain", "a"), ("deregister", "b")]


def test_routine_leaves_no_entry(house: House, admin: Client, worker: Client) -> None:
    controller = house.client("controller")
    assert put(controller, "scaling", "p/", {}).status == 200
    controller("POST", f"{STORE}/reap", {"pool": "p"})
    for name in ("a", "b"):
        about = {"worker_id": name, "worker_type": "t", "endpoint_url": f"http://10.0.0.1/{name}"}
        secret = worker("POST", "/api/v1/workers/register", about).body["secret"]
        me = worker.speaking(secret)
        if name == "a":
            reply = me("DELETE", "/api/v1/workers/deregister/a")
        else:
            left = {"worker": {"worker_id": name}, "status": "terminated"}
            reply = me("POST", f"{STORE}/update_status", left)
        assert reply.status == 200
    assert acts(admin) == []


def test_a_worker_holds_its_pool_off_for_an_hour_at_most(
    house: House, worker: Client, viewer: Client, admin: Client
) -> None:
    def held() -> float:
        return float(viewer("GET", "/api/v1/pools/p").body["paused_seconds"])

    hold = {"pool": "p", "seconds": YEARS}
    assert worker("POST", f"{STORE}/hold_off", hold).status == 200
    assert held() == 3600.0
    assert acts(admin) == [("hold_off", "p")]
    admin("POST", f"{STORE}/hold_off", hold)
    assert held() == YEARS


# -- triggers -----------------------------------------------------------------------------------


def test_a_trigger_that_comes_over_http_is_in_the_log_before_it_runs(
    house: House, admin: Client, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    assert put(admin, "trigger", "planted", trigger(command=["/bin/touch", str(ran)])).status == 200
    assert put(admin, "trigger-due", "planted", house.now - 90).status == 200
    assert acts(admin) == [("put", "trigger planted"), ("put", "trigger-due planted")]
    assert [one.trigger for one in tick(house.store).fired] == ["planted"]
    assert ran.exists()
    assert put(admin, "trigger", "planted", None).status == 200
    assert acts(admin)[-1] == ("put", "trigger planted")


@pytest.mark.parametrize(
    "body",
    [
        "nonsense",
        "[]",
        {},
        trigger("other"),
        trigger(schedule="every day"),
        trigger(command="rm -rf /"),
        trigger(type="push"),
    ],
    ids=str,
)
def test_a_trigger_that_cannot_be_one_is_refused(house: House, admin: Client, body: Any) -> None:
    assert put(admin, "trigger", "planted", body).status == 422
    assert registry.every(house.store) == []
    assert acts(admin) == []


@pytest.mark.parametrize("body", ["nonsense", "[]", '"now"', "null", "true"])
def test_a_due_time_is_a_number(house: House, admin: Client, body: str) -> None:
    assert put(admin, "trigger-due", "planted", body).status == 422
    assert house.store.backend.document("trigger-due", "planted") is None
