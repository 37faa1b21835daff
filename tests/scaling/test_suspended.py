"""Suspended workers: no capacity, but in their places."""

from __future__ import annotations

import pytest
from fleets_seen import POLICIES, pool_settings, seen

import sprat
from sprat import WorkerRegistration
from sprat.fleet import idle_rule
from sprat.scaling import policies

HUNGRY = {
    "pending-per-worker": {"target_pending_per_worker": 1},
    "step": {"steps": {"0": 0, "1+": 10}},
    "slo": {"wait_seconds": 60, "cold_start_seconds": 10},
}


@pytest.mark.parametrize("policy", POLICIES)
def test_suspended_workers_lower_the_useful_maximum(policy: str) -> None:
    settings = pool_settings(policy, **HUNGRY.get(policy, {}))
    before = seen(50, busy=7, suspended=2, oldest_ready_seconds=100.0)
    decision = policies.decide(before, settings)
    assert decision.launch == 1
    assert (decision.current, decision.desired) == (9, 10)
    assert "2 suspended, which leaves room for 8" in decision.reason
    assert (decision.inputs["suspended"], decision.inputs["max_workers"]) == (2, 10)
    assert decision.max_workers == 10, "the store counts them too"


def test_nobody_waits_for_a_suspended_worker_to_take_an_item() -> None:
    settings = pool_settings("queue-depth")
    assert policies.decide(seen(1, idle=1), settings).launch == 0
    assert policies.decide(seen(1, suspended=1), settings).launch == 1


def test_the_minimum_is_of_workers_that_take_work() -> None:
    decision = policies.decide(seen(suspended=2), pool_settings("queue-depth", low=3))
    assert decision.launch == 3


def test_above_the_maximum_the_suspended_leave_first() -> None:
    decision = policies.decide(seen(busy=4, suspended=3), pool_settings("queue-depth", high=5))
    assert decision.direction == "down"
    assert decision.drain == ("u2", "u1")
    decision = policies.decide(seen(busy=4, suspended=3), pool_settings("headroom", high=2))
    assert decision.drain == ("u2", "u1", "u0", "b3", "b2")
    assert decision.desired == 2


def test_below_the_maximum_they_may_come_back() -> None:
    decision = policies.decide(seen(idle=1, suspended=3), pool_settings("headroom"))
    assert decision.drain == ("i0",)


def test_an_idle_worker_stays_for_a_suspended_one() -> None:
    settings = pool_settings("queue-depth", low=1)
    assert policies.is_needed(seen(idle=1, suspended=1), settings, "i0")
    assert not policies.is_needed(seen(idle=2), settings, "i0")


def test_the_last_one_that_takes_work_stays_with_the_usual_policy_too() -> None:
    with sprat.open_store("memory://") as store:
        store.pool("p").configure(min_workers=1)
        for name in ("idle", "away"):
            store.workers.register(WorkerRegistration(worker_id=name, pool_id="p"))
        worker, settings = store.workers.get("idle"), store.pool("p").state().settings
        assert worker is not None
        assert not idle_rule.is_needed(store, "p", settings, worker)
        store.workers.heartbeat("away", {"suspended": True})
        assert idle_rule.is_needed(store, "p", settings, worker)
