"""Controllers and the simplest workers: metrics, scale sets, work request and result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from houses import Client, House
from patience import eventually


def push(pusher: Client, pool: str, *jobs: dict[str, object]) -> None:
    assert pusher("POST", f"/api/v1/pools/{pool}/jobs/bulk", {"jobs": list(jobs)}).status == 200


def test_queue_metrics_of_a_group_and_of_all(
    house: House, pusher: Client, controller: Client, worker: Client
) -> None:
    push(pusher, "a", {"data": 1}, {"data": 2, "group": "gpu"}, {"data": 3, "group": "gpu"})
    push(pusher, "b", {"data": 4})
    house.now += 30
    body = {"worker_id": "w", "machine_group": "gpu", "pool": "a"}
    assert worker("POST", "/work/request", body).status == 200
    assert controller("GET", "/queue/metrics").body == {
        "machine_group": None,
        "pending_fragments": 3,
        "running_fragments": 1,
        "active_workers": 1,
        "assigned_workers": 1,
        "oldest_pending_seconds": 30,
    }
    gpu = controller("GET", "/queue/metrics?machine_group=gpu").body
    assert gpu["machine_group"] == "gpu"
    assert gpu["pending_fragments"] + gpu["running_fragments"] in (2, 3)
    none = controller("GET", "/queue/metrics?machine_group=none").body
    assert (none["pending_fragments"], none["oldest_pending_seconds"]) == (0, None)


def test_scale_set_config_has_defaults_and_can_be_set(admin: Client, controller: Client) -> None:
    path = "/scale-sets/acme/gpu/config"
    assert controller("GET", path).body == {
        "min_replicas": 0,
        "max_replicas": 10,
        "target_pending_per_worker": 1.0,
        "scale_down_delay_seconds": 300,
        "poll_interval_seconds": 30,
    }
    assert admin("PUT", path, {"max_replicas": 50}).status == 200
    assert controller("GET", path).body["max_replicas"] == 50
    assert controller("GET", "/scale-sets/acme/cpu/config").body["max_replicas"] == 10
    assert admin("PUT", path, {"min_replicas": 5, "max_replicas": 1}).status == 422


def test_scale_set_numbers_are_as_the_environment_takes_them(
    house: House, admin: Client, controller: Client
) -> None:
    path = "/scale-sets/acme/gpu/config"
    wanted = {"target_pending_per_worker": 0, "scale_down_delay_seconds": 5}
    assert admin("PUT", path, wanted).status == 200
    found = controller("GET", path).body
    assert found["target_pending_per_worker"] == 0, "the queue does not count"
    assert repr(found["scale_down_delay_seconds"]) == "5"
    assert admin("PUT", path, {"scale_down_delay_seconds": 0.5}).status == 422
    older = '{"scale_down_delay_seconds": 5.0}'
    house.store.backend.put("acme.scale_set", "gpu", older, None, None)
    assert repr(controller("GET", path).body["scale_down_delay_seconds"]) == "5"


def test_the_longest_wait_is_in_whole_seconds(
    house: House, pusher: Client, controller: Client
) -> None:
    push(pusher, "a", {"data": 1})
    house.now += 30.7
    found = controller("GET", "/queue/metrics").body["oldest_pending_seconds"]
    assert repr(found) == "30"


def test_a_tenant_sees_its_own_scale_sets_only(house: House, admin: Client) -> None:
    admin("PUT", "/scale-sets/acme/gpu/config", {"max_replicas": 50})
    acme, umbrella = house.client("controller", "acme"), house.client("controller", "umbrella")
    assert acme("GET", "/scale-sets/acme/gpu/config").body["max_replicas"] == 50
    assert umbrella("GET", "/scale-sets/acme/gpu/config").status == 404
    assert umbrella("GET", "/scale-sets/umbrella/gpu/config").body["max_replicas"] == 10


def test_work_is_asked_for_and_its_result_reported(pusher: Client, worker: Client) -> None:
    assert worker("POST", "/work/request", {"worker_id": "w"}).status == 204
    push(pusher, "a", {"data": {"n": 1}})
    reply = worker("POST", "/work/request", {"worker_id": "w"})
    assert (reply.status, reply.body["payload"]) == (200, {"n": 1})
    result = {"work_id": reply.body["work_id"], "token": reply.body["token"], "result": "ok"}
    assert worker("POST", "/work/result", {**result, "token": "wrong"}).body == {"accepted": False}
    assert worker("POST", "/work/result", result).body == {"accepted": True}
    found = pusher("GET", f"/api/v1/pools/a/jobs/{reply.body['work_id']}").body
    assert (found["status"], found["result"]) == ("done", "ok")
    assert worker("POST", "/work/result", {**result, "work_id": "none"}).status == 404


def test_failed_work_is_tried_again(pusher: Client, worker: Client) -> None:
    push(pusher, "a", {"data": 1, "max_retries": 2})
    for attempt in (1, 2):
        work = worker("POST", "/work/request", {"worker_id": "w"}).body
        assert work["attempt"] == attempt
        result = {"work_id": work["work_id"], "token": work["token"], "status": "failed"}
        worker("POST", "/work/result", {**result, "error": "no disk"})
    assert pusher("GET", f"/api/v1/pools/a/jobs/{work['work_id']}").body["status"] == "poisoned"


def reported(pusher: Client, worker: Client, **body: Any) -> dict[str, Any]:
    """A job with one attempt after its worker reported this, and the answer to the report."""
    push(pusher, "a", {"data": 1, "max_retries": 1})
    work = worker("POST", "/work/request", {"worker_id": "w"}).body
    claim = {"work_id": work["work_id"], "token": work["token"]}
    reply = worker("POST", "/work/result", {**claim, **body})
    job = pusher("GET", f"/api/v1/pools/a/jobs/{work['work_id']}").body
    return {**job, "reply": reply}


@pytest.mark.parametrize(
    "body",
    [
        {"error": "boom"},
        {"error_message": "boom"},
        {"success": False, "error_message": "boom"},
        {"status": "FAILED", "error_message": "boom", "completed_at": "2026-01-01T00:00:00Z"},
        {"status": "failed", "error": "boom"},
        {"status": "Error", "error": "boom", "result": {"rows": 3}},
    ],
)
def test_every_form_of_failure_is_stored_as_failed(
    pusher: Client, worker: Client, body: dict[str, Any]
) -> None:
    job = reported(pusher, worker, **body)
    assert job["reply"].body == {"accepted": True}
    assert (job["status"], job["error"], job["result"]) == ("poisoned", "boom", None)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"success": False}, "the worker reported a failure without an error"),
        ({"status": "FAILED"}, "the worker reported a failure without an error"),
        ({"error": ""}, "the worker reported a failure without an error"),
        ({"success": False, "exit_code": 3}, "exit code 3"),
        ({"exit_code": 3, "worker_id": "w"}, "exit code 3"),
    ],
)
def test_a_failure_without_a_text_is_stored_as_failed(
    pusher: Client, worker: Client, body: dict[str, Any], error: str
) -> None:
    job = reported(pusher, worker, **body)
    assert (job["status"], job["error"]) == ("poisoned", error)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"success": True, "exit_code": 0, "worker_id": "w", "error_message": None},
        {"success": True, "error": ""},
        *({"status": word} for word in ("COMPLETED", "completed", "done", "Success")),
    ],
)
def test_every_form_of_success_is_stored_as_done(
    pusher: Client, worker: Client, body: dict[str, Any]
) -> None:
    job = reported(pusher, worker, result={"rows": 3}, **body)
    assert (job["status"], job["result"], job["error"]) == ("done", {"rows": 3}, None)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"success": True, "error": "boom"}, "contradicts"),
        ({"success": True, "exit_code": 1}, "contradicts"),
        ({"status": "completed", "error_message": "boom"}, "contradicts"),
        ({"status": "completed", "success": False}, "contradicts"),
        ({"status": "failed", "success": True}, "contradicts"),
        ({"status": "cancelled", "success": True}, "contradicts"),
        ({"status": "RUNNING"}, "use completed, failed, cancelled, transient or poisoned"),
        ({"status": "odd"}, "use completed, failed, cancelled, transient or poisoned"),
        ({"eror": "boom"}, "unknown field `eror`"),
    ],
)
def test_a_report_that_cannot_be_understood_changes_nothing(
    pusher: Client, worker: Client, body: dict[str, Any], message: str
) -> None:
    job = reported(pusher, worker, **body)
    assert job["reply"].status == 422
    assert message in job["reply"].body["message"]
    assert job["status"] == "claimed"


def test_work_that_its_worker_cancelled_is_over(pusher: Client, worker: Client) -> None:
    job = reported(pusher, worker, status="CANCELLED")
    assert (job["reply"].body, job["status"]) == ({"accepted": True}, "cancelled")
    again = {"work_id": job["id"], "token": "any", "status": "cancelled"}
    assert worker("POST", "/work/result", again).body == {"accepted": True}
    push(pusher, "a", {"data": 1})
    work = worker("POST", "/work/request", {"worker_id": "w"}).body
    wrong = {"work_id": work["work_id"], "token": "wrong", "status": "cancelled"}
    assert worker("POST", "/work/result", wrong).body == {"accepted": False}


def test_a_worker_that_holds_work_has_to_prove_itself(pusher: Client, worker: Client) -> None:
    push(pusher, "a", {"data": 1}, {"data": 2})
    first = worker("POST", "/work/request", {"worker_id": "w"})
    assert worker("POST", "/work/request", {"worker_id": "w"}).status == 409
    me = worker.speaking(first.headers["sprat-worker-secret"])
    assert me("POST", "/work/request", {"worker_id": "w"}).body["payload"] == 2


def test_work_of_a_group_goes_to_its_workers(pusher: Client, worker: Client) -> None:
    push(pusher, "a", {"data": 1, "group": "gpu"})
    assert worker("POST", "/work/request", {"worker_id": "cpu"}).status == 204
    body = {"worker_id": "gpu", "machine_group": "gpu"}
    assert worker("POST", "/work/request", body).status == 200


# -- workers that name no pool --------------------------------------------------------------------


def figures(house: House, query: str = "") -> tuple[int, int]:
    """Active and assigned workers, as a controller reads them."""
    body = house.client("controller")("GET", f"/queue/metrics{query}").body
    return body["active_workers"], body["assigned_workers"]


def fleet_of(house: House, pool: str) -> tuple[int, int]:
    """Active and idle workers of a pool."""
    workers = house.client("viewer")("GET", f"/api/v1/pools/{pool}").body["workers"]
    return workers["active"], workers["idle"]


@pytest.mark.parametrize("group", [None, "gpu"])
def test_a_worker_that_gets_work_is_counted_in_its_pool(
    house: House, pusher: Client, worker: Client, group: str | None
) -> None:
    push(pusher, "a", {"data": 0, "group": "arm"})
    push(pusher, "b", {"data": 1, "group": group})
    body = {"worker_id": "w", "machine_group": group}
    assert worker("POST", "/work/request", body).body["pool"] == "b"
    assert figures(house) == (1, 1)
    assert figures(house, "?machine_group=gpu") == ((1, 1) if group else (0, 0))
    assert figures(house, "?pool=b") == (1, 1)
    assert (fleet_of(house, "a"), fleet_of(house, "b")) == ((0, 0), (1, 0))


@pytest.mark.parametrize("is_proven", [False, True])
def test_a_worker_that_asks_before_there_is_work_is_counted(
    house: House, pusher: Client, worker: Client, is_proven: bool
) -> None:
    body = {"worker_id": "w", "machine_group": "gpu"}
    first = worker("POST", "/work/request", body)
    assert first.status == 204
    assert figures(house) == figures(house, "?machine_group=gpu") == (1, 0)
    assert figures(house, "?machine_group=arm") == (0, 0)
    push(pusher, "a", {"data": 1, "delay": 60})
    me = worker.speaking(first.headers["sprat-worker-secret"]) if is_proven else worker
    assert me("POST", "/work/request", body).status == 204
    assert (figures(house), fleet_of(house, "a")) == ((1, 0), (1, 1))
    house.now += 60.5  # the job is due, and the worker's lease has ended
    assert figures(house) == (0, 0)
    assert me("POST", "/work/request", body).status == 200
    assert (figures(house), fleet_of(house, "a")) == ((1, 1), (1, 0))


def test_an_idle_worker_is_counted_in_the_pool_of_its_group(
    house: House, pusher: Client, worker: Client
) -> None:
    push(pusher, "a", {"data": 1, "group": "arm"})
    push(pusher, "b", {"data": 2, "group": "gpu"})
    for name in ("gpu-1", "gpu-2"):
        worker("POST", "/work/request", {"worker_id": name, "machine_group": "gpu"})
    worker("POST", "/work/request", {"worker_id": "any"})
    assert (fleet_of(house, "a"), fleet_of(house, "b")) == ((0, 0), (2, 1))
    assert figures(house) == (3, 1), (
        "a worker without a group belongs to no pool before it has work"
    )
    assert figures(house, "?machine_group=gpu") == (2, 1)


def test_a_worker_moves_to_the_pool_that_has_work_but_keeps_what_it_holds(
    house: House, pusher: Client, worker: Client
) -> None:
    push(pusher, "a", {"data": 1})
    first = worker("POST", "/work/request", {"worker_id": "w"})
    push(pusher, "b", {"data": 2}, {"data": 3})
    me = worker.speaking(first.headers["sprat-worker-secret"])
    second = me("POST", "/work/request", {"worker_id": "w"})
    assert (second.body["pool"], fleet_of(house, "a")[0]) == ("b", 1)
    for work in (first.body, second.body):
        result = {"work_id": work["work_id"], "token": work["token"]}
        assert me("POST", "/work/result", result).body == {"accepted": True}
    third = me("POST", "/work/request", {"worker_id": "w"})
    assert (third.body["pool"], third.body["attempt"]) == ("b", 1)
    assert (fleet_of(house, "a"), fleet_of(house, "b")) == ((0, 0), (1, 0))
    me = worker.speaking(third.headers["sprat-worker-secret"])
    assert me("POST", "/work/request", {"worker_id": "w"}).status == 204


def test_a_tenants_worker_is_counted_for_its_tenant(house: House) -> None:
    acme, umbrella = house.client("controller", "acme"), house.client("controller", "umbrella")
    house.client("worker", "acme")("POST", "/work/request", {"worker_id": "w"})
    assert acme("GET", "/queue/metrics").body["active_workers"] == 1
    assert umbrella("GET", "/queue/metrics").body["active_workers"] == 0


def test_a_draining_worker_gets_no_more_work_and_keeps_what_it_holds(
    pusher: Client, worker: Client, controller: Client
) -> None:
    push(pusher, "a", {"data": 1}, {"data": 2})
    first = worker("POST", "/work/request", {"worker_id": "w"})
    assert controller("POST", "/api/v1/workers/w/drain").status == 200
    assert worker("POST", "/work/request", {"worker_id": "w"}).status == 409
    me = worker.speaking(first.headers["sprat-worker-secret"])
    assert me("POST", "/work/request", {"worker_id": "w"}).status == 204
    result = {"work_id": first.body["work_id"], "token": first.body["token"]}
    assert me("POST", "/work/result", result).body == {"accepted": True}


def test_a_worker_that_waits_and_names_no_pool_gets_what_comes(
    pusher: Client, worker: Client
) -> None:
    body = {"worker_id": "w", "wait_seconds": 30}
    with ThreadPoolExecutor(1) as thread:
        reply = thread.submit(worker, "POST", "/work/request", body)
        eventually(lambda: worker("GET", "/api/v1/workers/w").status == 200)
        push(pusher, "a", {"data": 1})
        assert reply.result().body["payload"] == 1
