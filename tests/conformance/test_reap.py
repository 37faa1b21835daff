"""Reap: stale workers are lost, and their items free, in one step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprat.core.model import Decision, Reaped, WorkerRecord
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Advance = Callable[[float], None]
Enrol = Callable[..., WorkerRecord]


def status(store: Store, worker_id: str) -> str:
    worker = store.workers.get(worker_id)
    assert worker is not None
    return worker.status


@pytest.mark.parametrize("before", ["active", "terminating"])
def test_worker_whose_lease_has_ended_is_lost(
    store: Store, enrol: Enrol, advance: Advance, before: str
) -> None:
    enrol("w1", lease_seconds=10)
    store.workers.update_status("w1", before)
    advance(9)
    assert store.workers.reap() == Reaped()
    advance(2)
    assert store.workers.reap().workers == ("w1",)
    assert status(store, "w1") == "lost"


def test_lost_worker_shows_why(store: Store, enrol: Enrol, advance: Advance) -> None:
    enrol("w1", lease_seconds=10)
    advance(11)
    store.workers.reap()
    worker = store.workers.get("w1")
    assert worker is not None
    assert worker.reason == "its lease ended without a heartbeat"


def test_a_worker_lost_by_a_threshold_shows_the_threshold(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance
) -> None:
    enrol("w1", lease_seconds=600)
    pool.push("work", max_retries=1)
    pool.claim("w1")
    advance(3)
    assert store.workers.reap(threshold_seconds=1.5).workers == ("w1",)
    worker = store.workers.get("w1")
    assert worker is not None
    assert worker.reason == (
        "no heartbeat for more than 1.5 s, the threshold of the pass that looked"
    )
    [item] = pool.items()
    assert "no heartbeat for more than 1.5 s" in (item.error or "")


def test_worker_is_reaped_once(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance
) -> None:
    enrol("w1", lease_seconds=10)
    pool.push("work")
    pool.claim("w1")
    advance(11)
    assert store.workers.reap() == Reaped(workers=("w1",), released=1)
    assert store.workers.reap() == Reaped()
    assert pool.items()[0].attempts == 1


def test_ended_workers_are_left_alone(store: Store, enrol: Enrol, advance: Advance) -> None:
    enrol("w1", lease_seconds=10)
    store.workers.update_status("w1", "terminated")
    advance(11)
    assert store.workers.reap() == Reaped()
    assert status(store, "w1") == "terminated"


def test_reap_says_what_it_released_and_poisoned(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance
) -> None:
    enrol("w1", lease_seconds=10), enrol("w2", lease_seconds=10), enrol("w3")
    pool.push_many(["a", "b", "c"])
    pool.push("last", max_retries=1)
    pool.claim_many("w1", 2)
    pool.claim_many("w3", 1)
    pool.claim_many("w2", 1)
    advance(11)
    reaped = store.workers.reap()
    assert sorted(reaped.workers) == ["w1", "w2"]
    assert (reaped.released, reaped.poisoned, reaped.expired) == (3, 1, ())
    counts = pool.counts()
    assert (counts.pending, counts.claimed, counts.poisoned) == (2, 1, 1)


def test_threshold_goes_by_the_last_heartbeat(store: Store, enrol: Enrol, advance: Advance) -> None:
    enrol("w1", lease_seconds=1000), enrol("w2", lease_seconds=10)
    advance(15)
    store.workers.heartbeat("w2")
    advance(11)
    assert store.workers.reap(threshold_seconds=20).workers == ("w1",)
    assert status(store, "w2") == "active"  # its lease has ended, but that was not the question


def test_reap_may_be_limited_to_one_pools_workers(
    store: Store, enrol: Enrol, advance: Advance
) -> None:
    enrol("w1", lease_seconds=10, pool_id="papers")
    enrol("w2", lease_seconds=10, pool_id="other")
    enrol("w3", lease_seconds=10)
    advance(11)
    assert store.workers.reap("papers").workers == ("w1",)
    assert [status(store, name) for name in ("w2", "w3")] == ["active", "active"]
    assert sorted(store.workers.reap().workers) == ["w2", "w3"]


def test_reaped_workers_are_reported_oldest_first(
    store: Store, enrol: Enrol, advance: Advance
) -> None:
    for name in ("z", "a", "m"):
        enrol(name, lease_seconds=100)
        advance(1)
    advance(200)
    assert store.workers.reap().workers == ("z", "a", "m")


def test_launch_past_its_deadline_is_lost(store: Store, pool: WorkPool, advance: Advance) -> None:
    decision = Decision(
        pool="papers",
        policy="test",
        direction="up",
        current=0,
        desired=2,
        reason="a test",
        launch=2,
        max_workers=2,
        start_deadline_seconds=30.0,
    )
    recorded = pool.record(decision, version=0)
    assert recorded is not None
    advance(29)
    assert store.workers.reap(threshold_seconds=1) == Reaped()  # the deadline counts, not that
    advance(2)
    reaped = store.workers.reap()
    assert sorted(reaped.expired) == sorted(recorded.launched)
    assert reaped.workers == ()
    assert [status(store, name) for name in recorded.launched] == ["lost", "lost"]
    seen = pool.observe()
    assert seen.launch_failures == 1  # what died together has one cause
    assert seen.last_launch_failure_at is not None


def test_two_reapers_do_not_get_in_each_others_way(
    store: Store,
    pool: WorkPool,
    enrol: Enrol,
    advance: Advance,
    open_again: Callable[[], Store],
) -> None:
    enrol("w1", lease_seconds=10)
    pool.push("work", max_retries=2)
    pool.claim("w1")
    other = open_again()
    advance(11)
    answers = [store.workers.reap(), other.workers.reap()]
    assert [answer.released for answer in answers] == [1, 0]
    assert pool.items()[0].attempts == 1
