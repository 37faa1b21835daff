"""Observe and record: what a scaling pass sees, and how one of many wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sprat.core.model import NO_GROUP, Counts, Decision, WorkerRecord, WorkerRegistration
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Advance = Callable[[float], None]
Enrol = Callable[..., WorkerRecord]


def decide(**about: Any) -> Decision:
    values: dict[str, Any] = {
        "pool": "papers",
        "policy": "test",
        "direction": "up",
        "current": 0,
        "desired": 1,
        "reason": "a test",
        "max_workers": 10,
    }
    return Decision(**{**values, **about})


def launch(pool: WorkPool, n: int, **about: Any) -> tuple[str, ...]:
    recorded = pool.record(
        decide(launch=n, **about), version=pool.observe(about.get("group")).version
    )
    assert recorded is not None
    return recorded.launched


def arrive(store: Store, worker_id: str, **about: Any) -> WorkerRecord:
    return store.workers.register(
        WorkerRegistration(worker_id=worker_id, reserved=True, lease_seconds=1000, **about)
    )


def status(store: Store, worker_id: str) -> str:
    worker = store.workers.get(worker_id)
    assert worker is not None
    return worker.status


# -- observe ------------------------------------------------------------------------------------


def test_what_tenants_at_their_limit_wait_for_is_held(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push_many(range(5), tenant="a")
    assert pool.observe().held == 0, "nobody is limited"
    pool.configure(tenant_limit=2, tenant_limits={"big": 4, "blocked": 0})
    pool.push_many(range(3), tenant="big")
    pool.push_many(range(6), tenant="blocked", priority=3)
    pool.push("anybody's")
    pool.push("elsewhere", tenant="a", group="gpu")
    seen = pool.observe()
    assert (seen.counts.ready, seen.held, seen.claimable) == (16, 4 + 6, 6)
    while pool.claim(worker):
        pass
    assert (pool.observe().counts.claimed, pool.observe().claimable) == (6, 0)
    held = [pool.observe(group).held for group in (None, NO_GROUP, "gpu")]
    assert held == [4 + 6, 3 + 6, 1]
    for item in pool.items(status="claimed"):
        pool.complete(item)
    assert pool.observe().claimable == 2


def test_unknown_pool_is_observed_as_empty(pool: WorkPool, store: Store) -> None:
    seen = pool.observe()
    assert (seen.pool, seen.group, seen.version) == ("papers", None, 0)
    assert (seen.counts, seen.workers, seen.oldest_ready_seconds) == (Counts(), (), None)
    assert (seen.paused, seen.launch_failures) == (False, 0)
    assert (seen.last_up_at, seen.last_down_at, seen.last_launch_failure_at) == (None, None, None)
    assert store.pools() == []


def test_observe_sees_counts_workers_and_statistics_of_one_moment(
    pool: WorkPool, enrol: Enrol, advance: Advance
) -> None:
    enrol("w1", pool_id="papers"), enrol("w2", pool_id="papers"), enrol("other", pool_id="other")
    enrol("nobodys")
    pool.push_many(range(3))
    pool.push("later", delay=500)
    pool.claim("w1")
    advance(30)
    seen = pool.observe()
    assert seen.counts == Counts(pending=3, delayed=1, claimed=1)
    assert [worker.worker_id for worker in seen.workers] == ["w1", "w2"]
    assert (seen.active, seen.idle, seen.starting) == (2, 1, 0)
    assert seen.oldest_ready_seconds == pytest.approx(30, abs=2)
    assert (seen.stats.arrivals, seen.stats.starts) == (4, 1)
    assert seen.now > 0


def test_live_workers_are_those_whose_lease_has_not_ended(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance
) -> None:
    enrol("short", pool_id="papers", lease_seconds=10)
    enrol("leaving", pool_id="papers")
    enrol("left", pool_id="papers")
    enrol("gone", pool_id="papers")
    store.workers.update_status("leaving", "terminating")
    store.workers.update_status("left", "terminated")
    store.workers.update_status("gone", "lost")
    assert {worker.worker_id for worker in pool.observe().workers} == {"short", "leaving"}
    advance(11)
    assert [worker.worker_id for worker in pool.observe().workers] == ["leaving"]


def test_with_a_group_only_what_needs_it_and_who_can_do_it_counts(
    pool: WorkPool, enrol: Enrol
) -> None:
    enrol("plain", pool_id="papers"), enrol("gpu", pool_id="papers", capabilities=["gpu"])
    pool.push_many(range(2))
    pool.push_many(range(3), group="gpu")
    pool.push("later", group="gpu", delay=60)
    pool.push("parked", group="gpu", backlog=True)
    seen = pool.observe("gpu")
    assert seen.group == "gpu"
    assert seen.counts == Counts(pending=4, delayed=1, backlog=1)
    assert [worker.worker_id for worker in seen.workers] == ["gpu"]
    assert pool.observe().counts == Counts(pending=6, delayed=1, backlog=1)
    assert pool.observe("none").counts == Counts()


def test_work_that_needs_no_group_can_be_counted_alone(pool: WorkPool, enrol: Enrol) -> None:
    enrol("plain", pool_id="papers"), enrol("gpu", pool_id="papers", capabilities=["gpu"])
    pool.push_many(range(3), group="gpu")
    pool.push("later", group="gpu", delay=60)
    assert pool.observe(NO_GROUP).counts == Counts()
    assert pool.observe(NO_GROUP).oldest_ready_seconds is None
    pool.push_many(range(2))
    pool.push("much later", delay=100)
    seen = pool.observe(NO_GROUP)
    assert seen.counts == Counts(pending=3, delayed=1)
    assert seen.oldest_ready_seconds is not None
    assert seen.next_due_seconds == pytest.approx(100, abs=2)
    assert seen.workers == ()


def test_oldest_ready_item_is_not_a_delayed_one(pool: WorkPool, advance: Advance) -> None:
    pool.push("later", delay=100)
    assert pool.observe().oldest_ready_seconds is None
    advance(150)
    assert pool.observe().oldest_ready_seconds == pytest.approx(50, abs=2)


def test_next_delayed_item_is_announced(pool: WorkPool, advance: Advance) -> None:
    assert pool.observe().next_due_seconds is None
    pool.push("much later", delay=500)
    pool.push("later", delay=100, group="gpu")
    pool.cancel(pool.push("never", delay=50))
    assert pool.observe().next_due_seconds == pytest.approx(100, abs=2)
    assert pool.observe("none").next_due_seconds is None
    advance(101)
    assert pool.observe().next_due_seconds == pytest.approx(399, abs=2)
    assert pool.observe("gpu").next_due_seconds is None


def test_pause_is_observed(pool: WorkPool) -> None:
    pool.pause()
    assert pool.observe().paused
    pool.resume()
    assert not pool.observe().paused


# -- record -------------------------------------------------------------------------------------


def test_recorded_decision_is_kept_with_its_reason(pool: WorkPool, store: Store) -> None:
    decision = decide(
        policy="backlog",
        current=1,
        desired=3,
        reason="two items a worker",
        inputs={"pending": 6, "rate": 0.5},
        launch=2,
    )
    recorded = pool.record(decision, version=0)
    assert recorded is not None
    assert (recorded.version, recorded.pool, recorded.group) == (1, "papers", None)
    assert (recorded.policy, recorded.direction) == ("backlog", "up")
    assert (recorded.current, recorded.desired) == (1, 3)
    assert recorded.reason == "two items a worker"
    assert recorded.inputs == {"pending": 6, "rate": 0.5}
    assert (len(recorded.launched), recorded.drained) == (2, ())
    assert pool.decisions() == [recorded]


def test_record_moves_the_version_by_one(pool: WorkPool) -> None:
    for version in range(3):
        assert pool.observe().version == version
        recorded = pool.record(decide(direction="hold"), version=version)
        assert recorded is not None
        assert recorded.version == version + 1


@pytest.mark.parametrize("version", [0, 2, -1])
def test_of_two_deciders_one_wins(pool: WorkPool, store: Store, version: int) -> None:
    launch(pool, 1)
    assert pool.observe().version == 1
    assert pool.record(decide(launch=1), version=version) is None
    assert len(store.workers.list()) == 1
    assert len(pool.decisions()) == 1
    assert pool.observe().version == 1


def test_launched_workers_are_starting_until_their_deadline(
    pool: WorkPool, store: Store, advance: Advance
) -> None:
    ids = launch(pool, 2, capabilities=("gpu", "big"), start_deadline_seconds=40.0)
    assert len(set(ids)) == 2
    assert all(worker_id.startswith("w-") for worker_id in ids)
    for worker in store.workers.list():
        assert (worker.status, worker.pool_id) == ("starting", "papers")
        assert worker.capabilities == ("gpu", "big")
        assert worker.incarnation == 0
    assert pool.observe().starting == 2
    advance(41)
    assert pool.observe().starting == 0


def test_fleet_never_exceeds_its_maximum(pool: WorkPool, store: Store, enrol: Enrol) -> None:
    enrol("w1", pool_id="papers")
    launch(pool, 2, max_workers=3)
    assert pool.record(decide(launch=1, max_workers=3), version=1) is None
    assert pool.observe().version == 1
    assert len(store.workers.list()) == 3
    assert pool.record(decide(launch=1, max_workers=4), version=1) is not None


def test_decision_without_a_launch_is_recorded_above_the_maximum(
    pool: WorkPool, enrol: Enrol
) -> None:
    enrol("w1", pool_id="papers"), enrol("w2", pool_id="papers")
    recorded = pool.record(decide(direction="down", drain=("w1",), max_workers=1), version=0)
    assert recorded is not None
    assert recorded.drained == ("w1",)


def test_ended_and_leaving_workers_do_not_count_against_the_maximum(
    pool: WorkPool, store: Store, enrol: Enrol, advance: Advance
) -> None:
    enrol("leaving", pool_id="papers"), enrol("gone", pool_id="papers")
    enrol("stale", pool_id="papers", lease_seconds=10), enrol("elsewhere", pool_id="other")
    store.workers.update_status("leaving", "terminating")
    store.workers.update_status("gone", "lost")
    advance(11)
    assert pool.record(decide(launch=1, max_workers=1), version=0) is not None


def test_group_has_a_version_and_a_maximum_of_its_own(
    pool: WorkPool, store: Store, enrol: Enrol
) -> None:
    enrol("plain", pool_id="papers")
    launch(pool, 1, group="gpu", capabilities=("gpu",), max_workers=1)
    assert (pool.observe("gpu").version, pool.observe().version) == (1, 0)
    assert pool.record(decide(group="gpu", launch=1, max_workers=1), version=1) is None
    assert pool.record(decide(launch=1, max_workers=3), version=0) is not None


def test_scale_sets_of_two_pools_do_not_know_each_other(store: Store) -> None:
    one, other = store.pool("one"), store.pool("other")
    launch(one, 1)
    assert (one.observe().version, other.observe().version) == (1, 0)
    assert len(other.observe().workers) == 0


def test_drained_workers_are_told_to_leave(pool: WorkPool, store: Store, enrol: Enrol) -> None:
    enrol("idle", pool_id="papers"), enrol("gone", pool_id="papers")
    store.workers.update_status("gone", "lost")
    (starting,) = launch(pool, 1)
    drain = ("idle", starting, "gone", "nobody")
    recorded = pool.record(decide(direction="down", drain=drain), version=1)
    assert recorded is not None
    assert recorded.drained == ("idle", starting)
    assert [status(store, name) for name in ("idle", starting, "gone")] == [
        "terminating",
        "terminated",
        "lost",
    ]
    assert store.workers.heartbeat("idle").status == "terminating"


def test_drained_worker_finishes_its_job(pool: WorkPool, store: Store, enrol: Enrol) -> None:
    enrol("busy", pool_id="papers")
    pool.push("work")
    item = pool.claim("busy")
    assert item is not None
    pool.record(decide(direction="down", drain=("busy",)), version=0)
    assert pool.claim("busy") is None
    assert pool.complete(item, "finished")


@pytest.mark.parametrize(
    ("direction", "up", "down"),
    [("up", True, False), ("down", False, True), ("hold", False, False)],
)
def test_cooldowns_are_kept_by_direction(
    pool: WorkPool, direction: str, up: bool, down: bool
) -> None:
    pool.record(decide(direction=direction), version=0)
    seen = pool.observe()
    assert (seen.last_up_at is not None, seen.last_down_at is not None) == (up, down)


def test_one_direction_leaves_the_cooldown_of_the_other(pool: WorkPool, advance: Advance) -> None:
    pool.record(decide(direction="up"), version=0)
    up = pool.observe().last_up_at
    advance(60)
    pool.record(decide(direction="down"), version=1)
    pool.record(decide(direction="hold"), version=2)
    seen = pool.observe()
    assert seen.last_up_at == up
    assert up is not None
    assert seen.last_down_at is not None
    assert seen.last_down_at >= up + 60


def test_decisions_come_newest_first(pool: WorkPool, advance: Advance) -> None:
    for n in range(5):
        pool.record(decide(direction="hold", reason=f"reason {n}"), version=n)
        advance(1)
    assert [one.reason for one in pool.decisions(limit=3)] == ["reason 4", "reason 3", "reason 2"]
    assert [one.version for one in pool.decisions()] == [5, 4, 3, 2, 1]


def test_decisions_of_one_group_can_be_asked_for(pool: WorkPool, advance: Advance) -> None:
    pool.record(decide(direction="hold", reason="all"), version=0)
    advance(1)
    pool.record(decide(direction="hold", reason="gpu", group="gpu"), version=0)
    assert [(one.reason, one.group) for one in pool.decisions("gpu")] == [("gpu", "gpu")]


# -- asking for a pass --------------------------------------------------------------------------


def ask(pool: WorkPool, store: Store, max_workers: int = 10) -> bool:
    return store.backend.request_check(pool.name, max_workers)


def test_whoever_asks_first_has_to_start_the_pass(pool: WorkPool, store: Store) -> None:
    pool.push("work")
    assert [ask(pool, store) for _ in range(3)] == [True, False, False]


def test_pass_that_has_begun_may_be_asked_for_again(pool: WorkPool, store: Store) -> None:
    pool.push("work")
    assert ask(pool, store)
    store.backend.begin_check(pool.name)
    assert ask(pool, store)


def test_delayed_work_needs_somebody_who_waits_for_the_first_of_it(
    pool: WorkPool, store: Store, advance: Advance
) -> None:
    def asked() -> bool:
        answer = ask(pool, store)
        store.backend.begin_check(pool.name)
        return answer

    pool.push("late", delay=100)
    assert [asked(), asked()] == [True, False]
    pool.push("later", delay=200)
    assert not asked()
    pool.push("earlier", delay=50)
    assert [asked(), asked()] == [True, False]
    advance(60)  # whoever waited for it is dead
    assert asked()


def test_delayed_work_needs_nobody_else_while_somebody_is_there(
    pool: WorkPool, store: Store
) -> None:
    launch(pool, 1)
    pool.push("late", delay=100)
    assert not ask(pool, store)


def test_pass_that_never_began_may_be_asked_for_again(
    pool: WorkPool, store: Store, advance: Advance
) -> None:
    pool.push("work")
    assert ask(pool, store)
    advance(60)
    assert ask(pool, store)


def test_suspended_worker_is_not_idle_until_it_says_so(
    pool: WorkPool, store: Store, enrol: Enrol
) -> None:
    worker = enrol("w", pool_id="papers")
    pool.push("work")
    store.workers.heartbeat(worker.worker_id, {"suspended": True, "why": "no quota"})
    seen = pool.observe()
    assert [one.worker_id for one in seen.suspended] == [worker.worker_id]
    assert (seen.active, seen.idle) == (1, 0)
    assert ask(pool, store), "nobody idle takes it"
    store.backend.begin_check(pool.name)
    store.workers.heartbeat(worker.worker_id, {"suspended": False})
    assert (pool.observe().suspended, pool.observe().idle) == ((), 1)
    assert not ask(pool, store)


def test_busy_worker_is_busy_whatever_it_says(pool: WorkPool, store: Store, enrol: Enrol) -> None:
    worker = enrol("w", pool_id="papers")
    pool.push("work")
    pool.claim(worker.worker_id)
    store.workers.heartbeat(worker.worker_id, {"suspended": True})
    assert pool.observe().suspended == ()


def test_no_pass_is_needed_without_waiting_work(
    pool: WorkPool, store: Store, worker: WorkerRecord
) -> None:
    assert not ask(pool, store)
    pool.push("running")
    pool.claim("w1")
    pool.push("parked", backlog=True)
    assert not ask(pool, store)


def test_no_pass_is_needed_when_idle_or_starting_workers_will_take_the_work(
    pool: WorkPool, store: Store, enrol: Enrol
) -> None:
    enrol("idle", pool_id="papers")
    launch(pool, 1)
    pool.push_many([1, 2])
    assert not ask(pool, store)
    pool.push(3)
    assert ask(pool, store)


def test_no_pass_is_needed_when_the_fleet_may_not_grow(
    pool: WorkPool, store: Store, enrol: Enrol
) -> None:
    enrol("busy", pool_id="papers")
    pool.push_many(range(5))
    pool.claim("busy")
    launch(pool, 1)
    assert not ask(pool, store, max_workers=2)
    assert ask(pool, store, max_workers=3)


# -- failed launches ----------------------------------------------------------------------------


def test_launches_that_never_register_are_counted_in_a_row(
    pool: WorkPool, store: Store, advance: Advance
) -> None:
    for failures in range(1, 4):
        launch(pool, 1, start_deadline_seconds=10.0)
        advance(11)
        store.workers.reap()
        assert pool.observe().launch_failures == failures


def test_launches_that_expire_together_count_once(
    pool: WorkPool, store: Store, advance: Advance
) -> None:
    """However many they are: the process that prepared them was killed, and one more try is due
    soon."""
    launch(pool, 3, start_deadline_seconds=10.0)
    launch(pool, 2, group="gpu", start_deadline_seconds=10.0)
    advance(11)
    assert len(store.workers.reap().expired) == 5
    assert (pool.observe().launch_failures, pool.observe("gpu").launch_failures) == (1, 1)
    launch(pool, 3, start_deadline_seconds=10.0)
    advance(11)
    store.workers.reap()
    assert pool.observe().launch_failures == 2


def test_launch_that_is_known_to_have_failed_counts_at_once(pool: WorkPool, store: Store) -> None:
    (worker_id,) = launch(pool, 1)
    assert store.workers.update_status(worker_id, "lost", reason="no such image")
    seen = pool.observe()
    assert seen.launch_failures == 1
    assert seen.last_launch_failure_at is not None
    assert seen.starting == 0


@pytest.mark.parametrize("end", ["terminated", "terminating"])
def test_launch_that_was_given_up_is_no_failure(pool: WorkPool, store: Store, end: str) -> None:
    (worker_id,) = launch(pool, 1)
    store.workers.update_status(worker_id, end)
    assert pool.observe().launch_failures == 0


def test_active_worker_that_is_lost_is_no_failed_launch(pool: WorkPool, store: Store) -> None:
    (worker_id,) = launch(pool, 1)
    arrive(store, worker_id)
    store.workers.update_status(worker_id, "lost")
    assert pool.observe().launch_failures == 0


def test_worker_that_arrives_resets_the_failures(pool: WorkPool, store: Store) -> None:
    failed, arrives = launch(pool, 2)
    store.workers.update_status(failed, "lost")
    assert pool.observe().launch_failures == 1
    arrive(store, arrives)
    assert pool.observe().launch_failures == 0


def test_worker_that_arrives_resets_only_the_failures_of_its_own_scale_set(
    pool: WorkPool, store: Store
) -> None:
    failed, arrives = launch(pool, 2, group="gpu")
    (other,) = launch(pool, 1)
    store.workers.update_status(failed, "lost")
    assert (pool.observe("gpu").launch_failures, pool.observe().launch_failures) == (1, 0)
    arrive(store, other)
    assert pool.observe("gpu").launch_failures == 1
    arrive(store, arrives)
    assert pool.observe("gpu").launch_failures == 0


def test_expired_launch_that_arrives_late_cannot_exceed_the_maximum(
    pool: WorkPool, store: Store, advance: Advance
) -> None:
    (late,) = launch(pool, 1, max_workers=1, start_deadline_seconds=10.0)
    advance(11)
    (second,) = launch(pool, 1, max_workers=1)
    assert arrive(store, late).status == "lost"
    assert arrive(store, second).status == "active"
    assert pool.observe().active == 1


def test_stale_worker_is_lost_before_another_takes_its_slot(
    pool: WorkPool, store: Store, advance: Advance
) -> None:
    (stale,) = launch(pool, 1, max_workers=1)
    me = arrive(store, stale)
    advance(me.lease_seconds + 1)
    (second,) = launch(pool, 1, max_workers=1)
    assert store.workers.heartbeat(me).status == "lost"
    assert arrive(store, second).status == "active"
    assert pool.observe().active == 1


def test_arrival_frees_no_slot(pool: WorkPool, store: Store) -> None:
    (worker_id,) = launch(pool, 1, max_workers=1)
    arrive(store, worker_id)
    assert (pool.observe().starting, pool.observe().active) == (0, 1)
    assert pool.record(decide(launch=1, max_workers=1), version=1) is None


def test_failed_launch_frees_its_slot(pool: WorkPool, store: Store, advance: Advance) -> None:
    launch(pool, 1, max_workers=1, start_deadline_seconds=10.0)
    advance(11)
    store.workers.reap()
    assert len(launch(pool, 1, max_workers=1)) == 1
