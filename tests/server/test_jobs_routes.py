"""Jobs and pools over HTTP: push, read, claim, settle, pause."""

from __future__ import annotations

import gzip
import json
import threading

import pytest
from houses import Client, House

JOBS = "/api/v1/pools/papers/jobs"


def enrol(worker: Client, worker_id: str = "w1", **about: object) -> Client:
    """A registered worker, as a client that has its secret."""
    body = {"worker_id": worker_id, "lease_seconds": 600, **about}
    reply = worker("POST", "/api/v1/pools/papers/workers", body)
    assert reply.status == 200, reply
    return worker.speaking(reply.body["secret"])


def claim(worker: Client, worker_id: str = "w1", **about: object) -> list[dict]:
    reply = worker("POST", "/api/v1/pools/papers/claim", {"worker_id": worker_id, **about})
    assert reply.status == 200, reply
    return reply.body["jobs"]


def test_a_pushed_job_is_claimed_and_settled(pusher: Client, worker: Client) -> None:
    job_id = pusher("POST", JOBS, {"data": {"paper": 1}, "priority": 3}).body["id"]
    me = enrol(worker)
    (job,) = claim(me)
    assert (job["id"], job["data"], job["attempts"]) == (job_id, {"paper": 1}, 1)
    done = {"settlements": [{"id": job_id, "token": job["token"], "result": [1, 2]}]}
    for _ in range(2):  # repeating it is harmless
        assert worker("POST", "/api/v1/pools/papers/settle", done).body["settled"] == [True]
    found = pusher("GET", f"{JOBS}/{job_id}").body
    assert (found["status"], found["result"]) == ("done", [1, 2])
    assert "token" not in found


def test_attempts_of_a_pushed_job_have_two_names_and_one_meaning(pusher: Client) -> None:
    for given in ({"max_attempts": 5}, {"max_retries": 5}, {"max_attempts": 5, "max_retries": 5}):
        job_id = pusher("POST", JOBS, {"data": 1, **given}).body["id"]
        assert pusher("GET", f"{JOBS}/{job_id}").body["max_retries"] == 5
    reply = pusher("POST", JOBS, {"data": 1, "max_attempts": 5, "max_retries": 4})
    assert reply.status == 422
    assert "max_attempts is 5 and max_retries is 4" in str(reply.body)


def test_settle_and_claim_ride_on_one_request(pusher: Client, worker: Client) -> None:
    pusher("POST", f"{JOBS}/bulk", {"jobs": [{"data": 1}, {"data": 2}]})
    me = enrol(worker)
    (first,) = claim(me)
    reply = me(
        "POST",
        "/api/v1/pools/papers/exchange",
        {
            "worker_id": "w1",
            "settlements": [{"id": first["id"], "token": first["token"], "outcome": "complete"}],
        },
    ).body
    assert reply["settled"] == [True]
    assert [job["data"] for job in reply["jobs"]] == [2]


def test_a_big_number_arrives_as_it_was_sent(pusher: Client) -> None:
    number = 123456789012345678901234567890
    job_id = pusher("POST", JOBS, {"data": {"n": number}}).body["id"]
    assert pusher("GET", f"{JOBS}/{job_id}").body["data"] == {"n": number}


def test_a_stream_of_jobs_is_stored(pusher: Client) -> None:
    lines = b"".join(json.dumps({"data": n}).encode() + b"\n" for n in range(1234))
    headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
    reply = pusher("POST", f"{JOBS}/stream", gzip.compress(lines), headers)
    assert (reply.status, reply.body) == (200, {"pushed": 1234})


def test_a_stream_with_a_bad_line_says_which_and_what_is_stored(pusher: Client) -> None:
    lines = b'{"data": 1}\n' * 600 + b'{"priority": 1}\n'
    reply = pusher("POST", f"{JOBS}/stream", lines, {"Content-Type": "application/x-ndjson"})
    assert reply.status == 422
    assert "job 601" in reply.body["message"]
    assert "500 jobs before it are stored" in reply.body["message"]


def test_jobs_are_listed_page_by_page(pusher: Client) -> None:
    ids = pusher("POST", f"{JOBS}/bulk", {"jobs": [{"data": n} for n in range(7)]}).body["ids"]
    seen: list[str] = []
    after = ""
    while True:
        page = pusher("GET", f"{JOBS}?limit=3{after}").body
        seen += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert seen == ids


def test_the_same_key_with_another_payload_is_a_conflict(pusher: Client) -> None:
    first = pusher("POST", JOBS, {"data": 1, "key": "k"}).body["id"]
    assert pusher("POST", JOBS, {"data": 1, "key": "k"}).body["id"] == first
    reply = pusher("POST", JOBS, {"data": 2, "key": "k"})
    assert (reply.status, reply.body["error"]) == (409, "key_conflict")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": 1, "typo": 2},
        {"data": 1, "priority": "x"},
        {"data": 1, "delay": -1},
        b"{",
        b"\xff",
    ],
)
def test_a_bad_job_is_refused_with_a_sentence(pusher: Client, body: object) -> None:
    reply = pusher("POST", JOBS, body)
    assert reply.status == 422
    assert reply.body["message"]


def test_cancel_and_requeue(pusher: Client, admin: Client) -> None:
    job_id = pusher("POST", JOBS, {"data": 1}).body["id"]
    ids = {"ids": [job_id]}
    assert pusher("POST", "/api/v1/pools/papers/cancel", ids).body == {"changed": 1, "next": None}
    assert pusher("GET", f"{JOBS}/{job_id}").body["status"] == "cancelled"
    assert pusher("POST", "/api/v1/pools/papers/requeue", ids).body["changed"] == 1
    acts = admin("GET", "/api/v1/audit").body["acts"]
    assert [(act["act"], act["subject"]) for act in acts] == [
        ("cancel", "papers"),
        ("requeue", "papers"),
    ]


def test_jobs_are_filtered_with_the_words_of_the_command_line(
    pusher: Client, worker: Client
) -> None:
    jobs = [{"data": n, "key": f"k{n}", "tenant": "acme" if n else None} for n in range(3)]
    ids = pusher("POST", f"{JOBS}/bulk", {"jobs": jobs}).body["ids"]
    (job,) = claim(enrol(worker))
    failed = {"id": job["id"], "token": job["token"], "outcome": "poison", "error": "Timeout: 1"}
    settled = worker("POST", "/api/v1/pools/papers/settle", {"settlements": [failed]})
    assert settled.body["settled"] == [True]

    def found(query: str) -> list[str]:
        return [job["id"] for job in pusher("GET", f"{JOBS}?{query}").body["jobs"]]

    assert found("status=failed") == found("status=poisoned&error=Timeout") == [ids[0]]
    assert found("status=ready&newest=true") == [ids[2], ids[1]]
    assert found("key=k2") == [ids[2]]
    assert found("tenant=acme&limit=1") == [ids[1]]
    assert found("newer=600&newest=true") == ids[::-1]
    assert found("older=600") == found("status=delayed") == []
    assert pusher("GET", f"{JOBS}?status=asleep").status == 422


def test_jobs_are_cancelled_and_requeued_by_a_filter(pusher: Client, admin: Client) -> None:
    jobs = [{"data": n, "tenant": "acme" if n else None} for n in range(3)]
    ids = pusher("POST", f"{JOBS}/bulk", {"jobs": jobs}).body["ids"]
    cancelled = pusher("POST", "/api/v1/pools/papers/cancel", {"tenant": "acme"})
    assert cancelled.body == {"changed": 2, "next": None}
    statuses = [pusher("GET", f"{JOBS}/{one}").body["status"] for one in ids]
    assert statuses == ["pending", "cancelled", "cancelled"]
    wanted = {"status": "cancelled", "newer": 600}
    assert pusher("POST", "/api/v1/pools/papers/requeue", wanted).body["changed"] == 2
    acts = admin("GET", "/api/v1/audit").body["acts"]
    assert [(act["act"], act["ids"]) for act in acts] == [
        ("cancel", ids[1:]),
        ("requeue", ids[1:]),
    ]
    for body in ({}, {"ids": ids, "tenant": "acme"}, {"status": "asleep"}):
        assert pusher("POST", "/api/v1/pools/papers/cancel", body).status == 422


def test_a_paused_pool_hands_out_nothing(admin: Client, pusher: Client, worker: Client) -> None:
    pusher("POST", JOBS, {"data": 1})
    me = enrol(worker)
    admin("POST", "/api/v1/pools/papers/pause", {})
    assert claim(me) == []
    assert admin("GET", "/api/v1/pools/papers").body["paused"]
    admin("POST", "/api/v1/pools/papers/resume")
    assert len(claim(me)) == 1


def test_settings_change_by_name_and_version(admin: Client) -> None:
    path = "/api/v1/pools/papers/settings"
    assert admin("PATCH", path, {"settings": {"max_workers": 3}}).body == {"version": 1}
    stale = admin("PATCH", path, {"settings": {"max_workers": 4}, "if_version": 0})
    assert stale.status == 409
    assert admin("GET", "/api/v1/pools/papers").body["settings"]["max_workers"] == 3
    assert admin("PATCH", path, {"settings": {"max_wokers": 3}}).status == 422


def test_a_waiting_worker_gets_work_that_comes_later(pusher: Client, worker: Client) -> None:
    me = enrol(worker)
    got: list[list[dict]] = []
    waiter = threading.Thread(target=lambda: got.append(claim(me, wait_seconds=30)))
    waiter.start()
    pusher("POST", JOBS, {"data": "late"})
    waiter.join(20)
    assert [job["data"] for job in got[0]] == ["late"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_waiting_worker_that_is_drained_is_sent_home(
    house: House, controller: Client, worker: Client, is_there: bool
) -> None:
    """Also one that waits for a pool that does not exist yet."""
    if is_there:
        house.store.pool("papers").resume()
    me = enrol(worker)
    long_polls = house.served.state.long_polls
    got: list[list[dict]] = []
    waiter = threading.Thread(target=lambda: got.append(claim(me, wait_seconds=30)))
    waiter.start()
    while not (long_polls._watchers if is_there else long_polls._unwatched):
        assert waiter.is_alive()
    assert controller("POST", "/api/v1/workers/w1/drain").body == {"draining": True}
    waiter.join(20)
    assert got == [[]]


def test_work_for_another_group_does_not_wake_a_worker(pusher: Client, worker: Client) -> None:
    plain, gpu = enrol(worker, "plain"), enrol(worker, "gpu", capabilities=["gpu"])
    got: dict[str, list[dict]] = {}
    waiters = [
        threading.Thread(target=lambda c=c, n=n, s=s: got.update({n: claim(c, n, wait_seconds=s)}))
        for c, n, s in ((plain, "plain", 2), (gpu, "gpu", 30))
    ]
    for waiter in waiters:
        waiter.start()
    pusher("POST", JOBS, {"data": 1, "group": "gpu"})
    for waiter in waiters:
        waiter.join(20)
    assert got["plain"] == []
    assert len(got["gpu"]) == 1


def test_progress_and_checkpoint_need_the_token(pusher: Client, worker: Client) -> None:
    pusher("POST", JOBS, {"data": 1})
    me = enrol(worker)
    (job,) = claim(me)
    path = f"{JOBS}/{job['id']}/progress"
    body = {"token": job["token"], "progress": 0.5, "checkpoint": {"page": 3}}
    assert me("POST", path, body).body == {"held": True}
    assert me("POST", path, {**body, "token": "wrong"}).body == {"held": False}
    found = pusher("GET", f"{JOBS}/{job['id']}").body
    assert (found["progress"], found["checkpoint"]) == (0.5, {"page": 3})


def test_nobody_else_can_speak_for_a_worker(pusher: Client, worker: Client) -> None:
    pusher("POST", JOBS, {"data": 1})
    one, two = enrol(worker, "w1"), enrol(worker, "w2")
    beat = "/api/v1/workers/w1/heartbeat"
    assert worker("POST", beat, {}).status == 403
    assert two("POST", beat, {}).status == 403
    assert two("POST", "/api/v1/pools/papers/claim", {"worker_id": "w1"}).status == 403
    assert two("DELETE", "/api/v1/workers/deregister/w1").status == 403
    assert one("POST", beat, {}).body["status"] == "active"
    again = enrol(worker, "w1")
    assert again("POST", beat, {}).body["status"] == "active"
    assert one("POST", beat, {}).body["status"] == "lost", "an old incarnation's secret is stale"


def test_a_pool_is_deleted_once_it_is_unused(house: House, admin: Client, pusher: Client) -> None:
    job_id = pusher("POST", JOBS, {"data": 1}).body["id"]
    refused = admin("DELETE", "/api/v1/pools/papers")
    assert (refused.status, refused.body["error"]) == (409, "pool_in_use")
    assert refused.body["message"].startswith("pool 'papers' has 1 waiting job: run `sprat jobs")
    pusher("POST", "/api/v1/pools/papers/cancel", {"ids": [job_id]})
    assert pusher("DELETE", "/api/v1/pools/papers").status == 403
    assert admin("DELETE", "/api/v1/pools/papers").body == {"deleted": True}
    assert house.store.pools() == []
    assert admin("DELETE", "/api/v1/pools/papers").status == 404
    acts = admin("GET", "/api/v1/audit").body["acts"]
    assert [(one["act"], one["subject"]) for one in acts][-1] == ("delete_pool", "papers")


def test_a_tenant_deletes_its_own_pool_only(house: House) -> None:
    for name in ("papers", "acme.papers", "other.papers"):
        house.store.pool(name).configure(max_workers=1)
    assert house.client("admin", tenant="acme")("DELETE", "/api/v1/pools/papers").status == 200
    assert house.store.pools() == ["other.papers", "papers"]
