"""Workers that register themselves: routes, replacement, reconciliation."""

from __future__ import annotations

from typing import Any

import pytest
from houses import OPTIONS, Client, House

from sprat.config.probe_settings import Lifecycle

REGISTER = "/api/v1/workers/register"


def about(worker_id: str = "w1", port: int = 5003, **more: Any) -> dict[str, Any]:
    return {
        "worker_id": worker_id,
        "worker_type": "backtesting",
        "endpoint_url": f"http://192.168.1.201:{port}",
        **more,
    }


def running(house: House, worker: Client, worker_id: str, **job: Any) -> dict[str, Any]:
    """A job that this worker has claimed."""
    pusher = house.client("pusher")
    pusher("POST", "/api/v1/pools/backtesting/jobs", {"data": worker_id, **job})
    reply = worker("POST", "/api/v1/pools/backtesting/claim", {"worker_id": worker_id})
    (claimed,) = reply.body["jobs"]
    return dict(claimed)


def test_a_worker_registers_and_is_available(worker: Client, viewer: Client) -> None:
    reply = worker("POST", REGISTER, about(capabilities={"cores": 4}))
    assert reply.status == 200
    assert reply.body["registered"] is True
    assert reply.body["worker_id"] == "w1"
    assert reply.body["stop_operations"] == []
    found = viewer("GET", "/api/v1/workers/w1").body
    assert found["status"] == "available"
    assert found["endpoint_url"] == "http://192.168.1.201:5003"
    assert found["capabilities"] == {"cores": 4}


@pytest.mark.parametrize("capabilities", [{}, None, {"cores": 4}, ["gpu"], []])
def test_capabilities_come_back_as_they_were_sent(
    worker: Client, viewer: Client, capabilities: Any
) -> None:
    reply = worker("POST", REGISTER, about(capabilities=capabilities))
    sent = {} if capabilities is None else capabilities
    assert reply.body["worker"]["capabilities"] == sent
    assert viewer("GET", "/api/v1/workers/w1").body["capabilities"] == sent


@pytest.mark.parametrize("missing", ["worker_id", "worker_type", "endpoint_url"])
def test_a_bad_body_is_422(worker: Client, missing: str) -> None:
    body = {name: value for name, value in about().items() if name != missing}
    assert worker("POST", REGISTER, body).status == 422


@pytest.mark.parametrize("url", ["", "ftp://host", "http://", "http://u:p@host", "http://a b"])
def test_an_endpoint_is_a_plain_http_url(worker: Client, url: str) -> None:
    assert worker("POST", REGISTER, {**about(), "endpoint_url": url}).status == 422


def test_registering_again_updates_the_one_row(worker: Client, viewer: Client) -> None:
    worker("POST", REGISTER, about())
    worker("POST", REGISTER, about(port=5004, current_operation_id="op"))
    (found,) = viewer("GET", "/api/v1/workers").body["workers"]
    assert found["endpoint_url"].endswith(":5004")
    assert found["status"] == "busy"


def test_another_id_at_the_same_endpoint_replaces_the_old_one(
    worker: Client, viewer: Client
) -> None:
    worker("POST", REGISTER, about("old"))
    worker("POST", REGISTER, about("new"))
    assert [w["worker_id"] for w in viewer("GET", "/api/v1/workers").body["workers"]] == ["new"]
    assert viewer("GET", "/api/v1/workers/old").status == 404


def test_deregistering_takes_a_worker_out(
    worker: Client, viewer: Client, controller: Client
) -> None:
    secret = worker("POST", REGISTER, about()).body["secret"]
    path = "/api/v1/workers/deregister/w1"
    assert worker("DELETE", path).status == 403, "only the worker itself, or a controller"
    assert worker.speaking(secret)("DELETE", path).body == {"deregistered": True}
    assert viewer("GET", "/api/v1/workers/w1").status == 404
    assert controller("DELETE", path).status == 404


def test_workers_are_listed_by_type_and_status(worker: Client, viewer: Client) -> None:
    worker("POST", REGISTER, about("a", 1))
    worker("POST", REGISTER, about("b", 2, current_operation_id="op"))
    worker("POST", REGISTER, {**about("c", 3), "worker_type": "training"})
    ask = "/api/v1/workers"

    def ids(query: str) -> list[str]:
        return [w["worker_id"] for w in viewer("GET", ask + query).body["workers"]]

    assert ids("?worker_type=backtesting") == ["a", "b"]
    assert ids("?status=busy") == ["b"]
    assert ids("?limit=2") == ["a", "b"]
    assert ids("?limit=2&after=b") == ["c"]
    assert viewer("GET", f"{ask}?status=odd").status == 422


def test_finished_operations_are_settled_when_their_worker_comes_back(
    house: House, worker: Client, pusher: Client
) -> None:
    me = worker.speaking(worker("POST", REGISTER, about()).body["secret"])
    job = running(house, me, "w1")
    finished = [
        {"operation_id": "unknown", "result": 1},
        {"operation_id": job["id"], "result": {"profit": 2}},
    ]
    reply = me("POST", REGISTER, about(completed_operations=finished)).body
    assert reply["settled_operations"] == [job["id"]]
    found = pusher("GET", f"/api/v1/pools/backtesting/jobs/{job['id']}").body
    assert (found["status"], found["result"]) == ("done", {"profit": 2})
    again = me("POST", REGISTER, about(completed_operations=finished)).body
    assert again["settled_operations"] == [], "what is over is skipped"


@pytest.mark.parametrize(
    ("how", "status", "error"),
    [
        ({"status": "FAILED", "error_message": "no memory"}, "poisoned", "no memory"),
        ({"status": "failed", "error": "no memory"}, "poisoned", "no memory"),
        ({"error": "no memory"}, "poisoned", "no memory"),
        ({"success": False, "error_message": "no memory"}, "poisoned", "no memory"),
        ({"status": "COMPLETED", "result": {"profit": 2}}, "done", None),
        ({"status": "CANCELLED"}, "cancelled", None),
    ],
)
def test_a_finished_operation_is_stored_as_it_ended(
    house: House, worker: Client, how: dict[str, Any], status: str, error: str | None
) -> None:
    me = worker.speaking(worker("POST", REGISTER, about()).body["secret"])
    job = running(house, me, "w1", max_retries=1)
    finished = {"operation_id": job["id"], "completed_at": "2026-01-15T11:00:00Z", **how}
    reply = me("POST", REGISTER, about(completed_operations=[finished])).body
    assert reply["settled_operations"] == [job["id"]]
    stored = house.store.get(job["id"])
    assert (stored.status, stored.error) == (status, error)


def test_a_failed_operation_with_attempts_left_waits_again(house: House, worker: Client) -> None:
    me = worker.speaking(worker("POST", REGISTER, about()).body["secret"])
    job = running(house, me, "w1", max_retries=2)
    failed = {"operation_id": job["id"], "status": "FAILED", "error_message": "no memory"}
    me("POST", REGISTER, about(completed_operations=[failed]))
    stored = house.store.get(job["id"])
    assert (stored.status, stored.attempts, stored.error) == ("pending", 1, "no memory")


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "RUNNING"},
        {"status": "COMPLETED", "error_message": "no memory"},
        {"stauts": "FAILED"},
    ],
)
def test_one_report_that_cannot_be_understood_refuses_all_of_them(
    house: House, worker: Client, wrong: dict[str, Any]
) -> None:
    me = worker.speaking(worker("POST", REGISTER, about()).body["secret"])
    job = running(house, me, "w1")
    reports = [{"operation_id": job["id"], "result": 1}, {"operation_id": job["id"], **wrong}]
    assert me("POST", REGISTER, about(completed_operations=reports)).status == 422
    assert house.store.get(job["id"]).status == "claimed"
    assert me("POST", REGISTER, about(completed_operation=reports)).status == 422


def test_a_worker_that_proves_itself_keeps_its_operation(house: House, worker: Client) -> None:
    me = worker.speaking(worker("POST", REGISTER, about()).body["secret"])
    job = running(house, me, "w1")
    reply = me("POST", REGISTER, about(current_operation_id=job["id"])).body
    assert reply["stop_operations"] == []
    done = {"settlements": [{"id": job["id"], "token": job["token"]}]}
    assert me("POST", "/api/v1/pools/backtesting/settle", done).body["settled"] == [True]


def test_an_operation_that_another_holds_is_to_be_stopped(house: House, worker: Client) -> None:
    me = worker.speaking(worker("POST", REGISTER, about()).body["secret"])
    job = running(house, me, "w1")
    forgotten = house.client("controller")
    assert forgotten("DELETE", "/api/v1/workers/deregister/w1").status == 200
    other = worker.speaking(worker("POST", REGISTER, about("w2", 9)).body["secret"])
    claimed = other("POST", "/api/v1/pools/backtesting/claim", {"worker_id": "w2"}).body["jobs"]
    assert [one["id"] for one in claimed] == [job["id"]]
    reply = me("POST", REGISTER, about(current_operation_id=job["id"])).body
    assert reply["stop_operations"] == [job["id"]]
    assert me("POST", REGISTER, about(current_operation_id="unknown")).body["stop_operations"] == []


@pytest.mark.parametrize("ended", ["done", "poisoned", "cancelled"])
def test_an_operation_that_is_over_is_to_be_stopped(
    house: House, worker: Client, pusher: Client, ended: str
) -> None:
    me = worker.speaking(worker("POST", REGISTER, about()).body["secret"])
    job = running(house, me, "w1", max_retries=1)
    busy = about(current_operation_id=job["id"])
    assert me("POST", REGISTER, busy).body["stop_operations"] == []
    if ended == "cancelled":
        pusher("POST", "/api/v1/pools/backtesting/cancel", {"ids": [job["id"]]})
    else:
        outcome = "complete" if ended == "done" else "fail"
        settled = {"id": job["id"], "token": job["token"], "outcome": outcome}
        me("POST", "/api/v1/pools/backtesting/settle", {"settlements": [settled]})
    assert house.store.get(job["id"]).status == ended
    assert me("POST", REGISTER, busy).body["stop_operations"] == [job["id"]]


def test_nobody_settles_anothers_operation_by_registering(house: House, worker: Client) -> None:
    me = worker.speaking(worker("POST", REGISTER, about()).body["secret"])
    job = running(house, me, "w1")
    finished = [{"operation_id": job["id"], "result": "forged"}]
    reply = worker("POST", REGISTER, about(completed_operations=finished)).body
    assert reply["settled_operations"] == []


def test_while_shutting_down_registrations_come_back_later(house: House, worker: Client) -> None:
    house.served.state.is_leaving = True
    for path in (REGISTER, "/api/v1/pools/p/workers"):
        body = about() if path == REGISTER else {"worker_id": "w"}
        reply = worker("POST", path, body)
        assert reply.status == 503
        assert int(reply.headers["retry-after"]) > 0
    assert worker("GET", "/readyz").status == 503
    assert worker("GET", "/healthz").status == 200


def test_an_endpoint_that_is_never_probed_is_reported_once(
    worker: Client, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(2):
        worker("POST", REGISTER, about(f"w{number}", 5003 + number))
    warnings = [one.getMessage() for one in caplog.records if "probe_hosts" in one.getMessage()]
    assert len(warnings) == 1
    assert warnings[0].startswith("a worker registered an endpoint, but worker_lifecycle has no")


def test_no_warning_where_endpoints_are_probed(caplog: pytest.LogCaptureFixture) -> None:
    rules = Lifecycle(probe_hosts=("192.168.1.0/24",), health_check_interval=3600.0)
    house = House(OPTIONS.replace(lifecycle=rules))
    house.client("worker")("POST", REGISTER, about())
    house.close()
    assert "probe_hosts" not in caplog.text
