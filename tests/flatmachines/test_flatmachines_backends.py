"""flatmachines' interfaces over every store: its promises, without its duplicates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from flatmachines import DistributedWorkerHooks
from flatmachines.distributed import (
    RegistrationBackend,
    WorkBackend,
    WorkerFilter,
    WorkerRegistration,
    WorkPool,
)
from processes import Together, at_once
from worlds import World

from sprat.core.errors import InvalidInput
from sprat.flatmachines import Backends
from sprat.store.open_store import open_store
from sprat.store.store import Store

ROUNDS = 150


def go(step: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(step)


@pytest.fixture
def backends(store: Store) -> Backends:
    return Backends(store)


def test_they_are_what_flatmachines_asks_for(backends: Backends) -> None:
    assert isinstance(backends.registration, RegistrationBackend)
    assert isinstance(backends.work, WorkBackend)
    assert isinstance(backends.work.pool("papers"), WorkPool)
    DistributedWorkerHooks(registration=backends.registration, work=backends.work)


def test_an_item_is_claimed_and_completed(backends: Backends, store: Store) -> None:
    pool = backends.work.pool("papers")
    item_id = go(pool.push({"n": 1}, {"max_retries": 5}))
    assert go(pool.size()) == 1
    item = go(pool.claim("w1"))
    assert (item.id, item.data, item.status) == (item_id, {"n": 1}, "claimed")
    assert (item.claimed_by, item.attempts, item.max_retries) == ("w1", 1, 5)
    assert item.claimed_at.startswith("20")
    assert go(pool.claim("w1")) is None
    assert go(pool.size()) == 0
    go(pool.complete(item_id, {"ok": True}))
    go(pool.complete(item_id, {"ok": True}))
    done = store.get(item_id)
    assert (done.status, done.result) == ("done", {"ok": True})


def test_a_failure_is_tried_again_at_once_and_then_poisoned(
    backends: Backends, store: Store
) -> None:
    pool = backends.work.pool("papers")
    item_id = go(pool.push({}, {"max_retries": 2}))
    for attempt in (1, 2):
        item = go(pool.claim("w1"))
        assert item.attempts == attempt
        go(pool.fail(item.id, "no good"))
    assert go(pool.claim("w1")) is None
    assert (store.get(item_id).status, store.get(item_id).error) == ("poisoned", "no good")


def test_unknown_ids_are_key_errors(backends: Backends) -> None:
    pool, registration = backends.work.pool("papers"), backends.registration
    steps: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        lambda: pool.complete("nobody"),
        lambda: pool.fail("nobody"),
        lambda: registration.heartbeat("nobody"),
        lambda: registration.update_status("nobody", "terminated"),
    ]
    for step in steps:
        with pytest.raises(KeyError):
            go(step())
    assert go(registration.get("nobody")) is None
    with pytest.raises(InvalidInput, match="unknown option 'retries'"):
        go(pool.push({}, {"retries": 3}))


def test_a_worker_lives_and_is_found(backends: Backends) -> None:
    registration = backends.registration
    made = go(registration.register(WorkerRegistration("w1", "host", 7, ["gpu"])))
    assert (made.status, made.host, made.pid, made.capabilities) == ("active", "host", 7, ["gpu"])
    go(registration.register(WorkerRegistration("w2")))
    go(registration.heartbeat("w1", {"step": 3}))
    assert go(registration.get("w1")).metadata == {"step": 3}
    assert [w.worker_id for w in go(registration.list())] == ["w1", "w2"]
    assert [w.worker_id for w in go(registration.list(WorkerFilter(capability="gpu")))] == ["w1"]
    go(registration.update_status("w1", "terminated"))
    go(registration.update_status("w1", "active"))  # only forward: nothing changes
    active = go(registration.list(WorkerFilter(status="active")))
    assert [w.worker_id for w in active] == ["w2"]


def test_a_stale_worker_is_reaped_by_flatmachines_own_actions(
    backends: Backends, store: Store, advance: Callable[[float], None]
) -> None:
    hooks = DistributedWorkerHooks(registration=backends.registration, work=backends.work)
    pool = backends.work.pool("papers")
    go(backends.registration.register(WorkerRegistration("w1")))
    ids = [go(pool.push({"n": n})) for n in range(3)]
    for _ in ids:
        assert go(pool.claim("w1"))
    advance(61)
    context = {"pool_id": "papers", "stale_threshold_seconds": 60}
    context = go(hooks.on_action("s", "list_stale_workers", context))
    assert [w["worker_id"] for w in context["workers"]] == ["w1"]
    context["stale_workers"] = context["workers"]
    context = go(hooks.on_action("s", "reap_stale_workers", context))
    assert (context["reaped_count"], context["total_jobs_released"]) == (1, 3)
    assert go(pool.size()) == 3
    go(pool.complete(ids[0], "late"))  # of a worker that was given up: nothing happens
    assert store.get(ids[0]).status == "pending"


@pytest.mark.timeout(300)
def test_of_eight_processes_one_claims_an_item_in_every_round(shared: World) -> None:
    answers = at_once(8, _claim_together, shared.url)
    winners = [sum(one[number] for one in answers) for number in range(ROUNDS)]
    assert winners == [1] * ROUNDS


def _claim_together(place: int, together: Together, url: str) -> list[bool]:
    with open_store(url) as store:
        return asyncio.run(_rounds(place, together, store))


async def _rounds(place: int, together: Together, store: Store) -> list[bool]:
    pool = Backends(store).work.pool("papers")
    won = []
    for number in range(ROUNDS):
        if not place:
            await pool.push({"n": number})
        together()
        item = await pool.claim(f"w{place}")
        won.append(item is not None)
        if item is not None:
            await pool.complete(item.id)
        together()
    return won
