"""How many workers a pool wants, as KEDA and an HPA ask for it."""

from __future__ import annotations

import json

import pytest
from houses import House

from sprat.core.model import WorkerRegistration
from sprat.fleet import controller_lease

POLICIES = ["slo", "queue-depth", "pending-per-worker"]


def ask(house: House, pool: str = "papers", role: str = "viewer") -> dict[str, object]:
    reply = house.client(role)("GET", f"/api/v1/pools/{pool}/desired")
    assert reply.status == 200, reply
    body: dict[str, object] = reply.body
    return body


def register(house: House, count: int) -> list[str]:
    names = [f"w{n}" for n in range(count)]
    for name in names:
        house.store.workers.register(WorkerRegistration(worker_id=name, pool_id="papers"))
    return names


@pytest.mark.parametrize("policy", POLICIES)
def test_it_grows_with_the_work_and_shrinks_with_it(house: House, policy: str) -> None:
    pool = house.store.pool("papers")
    pool.configure(policy=policy, max_workers=8)
    assert ask(house)["desired"] == 0
    pool.push_many([{}] * 7)
    assert ask(house)["desired"] == 7
    held = [pool.claim(name) for name in register(house, 7)]
    assert ask(house)["desired"] == ask(house)["current"] == 7
    pool.push_many([{}] * 2)
    is_patient = policy == "pending-per-worker"  # it counts what waits against all workers
    assert ask(house)["desired"] == (7 if is_patient else 8)
    for worker in ("w0", "w1"):
        pool.complete(held.pop(0) or "none")
        held.append(pool.claim(worker))
    for item in held[:4]:
        pool.complete(item or "none")
    assert ask(house)["desired"] == 3


@pytest.mark.parametrize("policy", POLICIES)
def test_who_has_nothing_to_do_is_not_wanted(house: House, policy: str) -> None:
    pool = house.store.pool("papers")
    pool.configure(policy=policy, max_workers=8, min_workers=1)
    pool.push({})
    names = register(house, 6)
    assert pool.claim(names[2]) is not None
    found = ask(house)
    assert found["current"] == 6
    assert found["desired"] == 1
    pool.configure(min_workers=4)
    assert ask(house)["desired"] == 4


@pytest.mark.parametrize("policy", POLICIES)
def test_a_maximum_that_was_lowered_counts(house: House, policy: str) -> None:
    pool = house.store.pool("papers")
    pool.configure(policy=policy, max_workers=8)
    pool.push_many([{}] * 9)
    assert all(pool.claim(name) for name in register(house, 5))
    pool.configure(max_workers=2)
    assert ask(house)["desired"] == 2


def test_what_a_controller_goes_by_counts_while_it_leads(house: House) -> None:
    pool = house.store.pool("papers")
    pool.configure(max_workers=8)
    pool.push_many([{}] * 9)
    going_by = {"policy": "fixed", "policy_options": {}, "min_workers": 3, "max_workers": 5}
    lease = json.dumps({"group": None, "settings": going_by})
    assert house.store.backend.put(controller_lease.KIND, "papers", lease, None, 15.0)
    led = ask(house)
    assert (led["policy"], led["desired"]) == ("fixed", 5)
    house.now += 16
    assert ask(house)["desired"] == 8


def test_work_that_waits_keeps_the_idle(house: House) -> None:
    pool = house.store.pool("papers")
    pool.configure(max_workers=8)
    register(house, 6)
    pool.push_many([{}, {}])
    assert ask(house)["desired"] == 2


def test_asking_changes_nothing_and_says_why(house: House) -> None:
    pool = house.store.pool("papers")
    pool.configure(max_workers=3)
    pool.push_many([{}] * 5)
    before = pool.observe()
    first, second = ask(house), ask(house, role="controller")
    assert first == second
    assert first["reason"] == "5 waiting, 0 active (0 idle), 0 starting, maximum 3: launch 3"
    assert first["policy"] == "slo"
    after = pool.observe()
    assert (after.version, after.workers) == (before.version, before.workers)
    assert pool.decisions() == []


def test_a_paused_pool_wants_nobody_new(house: House) -> None:
    pool = house.store.pool("papers")
    pool.push({})
    pool.pause()
    assert ask(house)["desired"] == 0


def test_a_pool_that_does_not_exist_is_told(house: House) -> None:
    viewer = house.client("viewer")
    assert viewer("GET", "/api/v1/pools/papres/desired").status == 404
    assert "papres" not in house.store.pools()


def test_a_tenant_sees_its_own_pool(house: House) -> None:
    house.store.pool("acme.papers").push({})
    acme, umbrella = house.client("viewer", "acme"), house.client("viewer", "umbrella")
    found = acme("GET", "/api/v1/pools/papers/desired").body
    assert (found["pool"], found["desired"]) == ("papers", 1)
    assert umbrella("GET", "/api/v1/pools/papers/desired").status == 404


def test_workers_and_pushers_may_not_ask(house: House) -> None:
    house.store.pool("papers").push({})
    for role in ("worker", "pusher"):
        assert house.client(role)("GET", "/api/v1/pools/papers/desired").status == 403


def test_the_figure_for_prometheus_is_the_same(house: House) -> None:
    pool = house.store.pool("papers")
    pool.configure(max_workers=3)
    pool.push_many([{}] * 5)
    text = house.client("viewer")("GET", "/metrics").body
    assert 'sprat_worker_pool_desired_workers{pool="papers"} 3' in text.splitlines()
