"""The rules of the policies as tables, and the sentences for options that make no sense."""

from __future__ import annotations

from typing import Any

import pytest
from fleets_seen import NOW, POLICIES, pool_settings, seen

from sprat.config import settings
from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings
from sprat.scaling import drain_order, headroom, pending_per_worker, policies, step

# -- pending-per-worker -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pending", "target", "low", "high", "replicas"),
    [
        (0, 1.0, 0, 10, 0),
        (1, 1.0, 0, 10, 1),
        (7, 2.0, 0, 10, 4),
        (8, 2.0, 0, 10, 4),
        (100, 1.0, 0, 10, 10),
        (0, 1.0, 2, 10, 2),
        (3, 0.3, 0, 100, 10),
        (1, 1e9, 0, 10, 1),
        (5, 0, 2, 10, 2),
        (5, -1.0, 2, 10, 2),
        (5, 1e-300, 0, 10, 10),
    ],
)
def test_3_4_replicas_are_pending_over_target_between_the_bounds(
    pending: int, target: float, low: int, high: int, replicas: int
) -> None:
    assert pending_per_worker.replicas(pending, target, low=low, high=high) == replicas


@pytest.mark.parametrize(
    ("ready", "fleet", "options", "desired"),
    [
        (5, {}, {}, 5),
        (0, {"busy": 3, "idle": 2}, {}, 3),  # never below the busy
        (0, {"busy": 3}, {}, 3),
        (20, {"busy": 2}, {"target_pending_per_worker": 10}, 2),
        (20, {"idle": 5}, {"target_pending_per_worker": 10}, 2),
        (2, {"busy": 3, "idle": 2}, {}, 5),  # the idle are about to take what waits
        (2, {"busy": 3, "idle": 4}, {}, 5),
        (99, {"busy": 3}, {"target_pending_per_worker": 0}, 3),
        (99, {"busy": 12, "idle": 1}, {}, 10),  # above the maximum even the busy go
    ],
)
def test_3_4_running_work_is_not_forgotten(
    ready: int, fleet: dict[str, int], options: dict[str, Any], desired: int
) -> None:
    decision = policies.decide(seen(ready, **fleet), pool_settings("pending-per-worker", **options))
    assert decision.desired == desired


@pytest.mark.parametrize(
    ("last_down", "drained"),
    [(None, 3), (NOW - 300, 3), (NOW - 299, 0), (NOW, 0), (NOW - 1e6, 3)],
)
def test_3_5_down_waits_for_the_delay_since_the_last_change_down(
    last_down: float | None, drained: int
) -> None:
    before = seen(idle=3, last_down_at=last_down, last_up_at=NOW)
    decision = policies.decide(before, pool_settings("pending-per-worker"))
    assert len(decision.drain) == drained
    assert drained or "down in" in decision.reason


def test_3_5_up_waits_for_nothing() -> None:
    before = seen(4, last_down_at=NOW, last_up_at=NOW)
    assert policies.decide(before, pool_settings("pending-per-worker")).launch == 4


def test_only_the_excess_over_the_maximum_does_not_wait() -> None:
    before = seen(idle=12, last_down_at=NOW)
    decision = policies.decide(before, pool_settings("pending-per-worker"))
    assert (decision.desired, len(decision.drain)) == (10, 2)
    assert "2 more than the maximum 10" in decision.reason


# -- headroom, step, fixed ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("demand", "percent", "workers"),
    [(0, 20, 0), (1, 20, 2), (10, 20, 12), (10, 0, 10), (5, 100, 10), (30, 10, 33), (3, 250, 11)],
)
def test_3_8_headroom_is_per_cent_above_demand(demand: int, percent: float, workers: int) -> None:
    assert headroom.with_headroom(demand, percent) == workers


def test_3_8_headroom_counts_what_waits_and_what_runs() -> None:
    decision = policies.decide(seen(3, busy=2), pool_settings("headroom"))
    assert (decision.desired, decision.launch) == (6, 4)
    assert decision.reason == "3 waiting, 2 running, 20 % headroom: 6 wanted"


@pytest.mark.parametrize(
    ("waiting", "workers"),
    [(0, 1), (5, 1), (6, 3), (20, 3), (21, 10), (10_000, 10)],
)
def test_3_8_steps_are_looked_up(waiting: int, workers: int) -> None:
    rows = step.table({"6-20": 3, "0-5": 1, "21+": 10})
    assert step.workers_for(waiting, rows) == workers
    options = {"steps": {"0-5": 1, "6-20": 3, "21+": 10}}
    assert policies.decide(seen(waiting), pool_settings("step", **options)).desired == workers


def test_beyond_the_last_step_its_number_goes_on() -> None:
    assert step.workers_for(999, step.table({"0": 0, "1-5": 2})) == 2


@pytest.mark.parametrize(
    ("fleet", "desired"), [({}, 4), ({"busy": 2, "idle": 4}, 4), ({"busy": 6}, 4), ({"idle": 4}, 4)]
)
def test_fixed_is_minimum_and_maximum_in_one(fleet: dict[str, int], desired: int) -> None:
    decision = policies.decide(seen(99, **fleet), pool_settings("fixed", workers=4))
    assert decision.desired == desired


def test_a_paused_pool_launches_nobody_for_what_waits() -> None:
    for policy in ("queue-depth", "pending-per-worker", "headroom", "step"):
        decision = policies.decide(seen(9, paused=True), pool_settings(policy))
        assert decision.direction == "hold"
        assert "paused" in decision.reason


@pytest.mark.parametrize("policy", ["pending-per-worker", "headroom", "step", "fixed"])
def test_launches_that_keep_failing_are_tried_one_at_a_time(policy: str) -> None:
    failing = {"launch_failures": 3, "last_launch_failure_at": NOW - 1}
    assert policies.decide(seen(9, **failing), pool_settings(policy)).launch == 0
    later = {**failing, "last_launch_failure_at": NOW - 100}
    assert policies.decide(seen(9, **later), pool_settings(policy)).launch == 1


# -- victims ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "spare_busy", "chosen"),
    [
        (0, True, ()),
        (-3, True, ()),
        (1, True, ("s1",)),
        (3, True, ("s1", "s0", "i1")),
        (9, True, ("s1", "s0", "i1", "i0")),
        (5, False, ("s1", "s0", "i1", "i0", "b1")),
        (9, False, ("s1", "s0", "i1", "i0", "b1", "b0")),
    ],
)
def test_victims_are_the_latest_launches_then_the_idle_then_the_busy(
    n: int, spare_busy: bool, chosen: tuple[str, ...]
) -> None:
    workers = seen(busy=2, idle=2, starting=2, leaving=2).workers
    assert drain_order.choose(workers, n, spare_busy=spare_busy) == chosen


# -- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"policy": "queue-dept"}, "no policy 'queue-dept': did you mean queue-depth?"),
        ({"policy": "zzz"}, "use slo, queue-depth, pending-per-worker, headroom"),
        ({"policy": None}, "there is no policy None"),
        ({"policy_options": [1]}, "policy_options must be a mapping"),
        ({"policy_options": {1: 2}}, "policy_options must be a mapping"),
        (
            {"policy": "queue-depth", "policy_options": {"x": 1}},
            "it has no option 'x': it has none",
        ),
        (
            {"policy": "headroom", "policy_options": {"headroom_percents": 5}},
            "did you mean headroom_percent?",
        ),
        ({"policy": "headroom", "policy_options": {"headroom_percent": -5}}, "not -5"),
        ({"policy": "headroom", "policy_options": {"headroom_percent": True}}, "a number"),
        (
            {
                "policy": "pending-per-worker",
                "policy_options": {"target_pending_per_worker": float("nan")},
            },
            "target_pending_per_worker must be a number from 0",
        ),
        ({"policy": "fixed", "policy_options": {"workers": 11}}, "workers 11 is not between"),
        ({"policy": "fixed", "policy_options": {"workers": 2.5}}, "a whole number"),
        ({"policy": "latency", "policy_options": {"preset": "low-latenc"}}, "mean low-latency"),
        ({"policy": "latency", "policy_options": {"preset": 4}}, "no preset"),
        ({"policy": "latency", "policy_options": {"target_queue_depth": -1}}, "whole number"),
        ({"policy": "fixed", "min_workers": 4, "max_workers": 3}, "min_workers 4 is more than"),
        ({"policy": "step", "policy_options": {"steps": {}}}, "must be a table such as"),
        ({"policy": "step", "policy_options": {"steps": {"1-5": 1}}}, "begins at 1, expected 0"),
        ({"policy": "step", "policy_options": {"steps": {"0-5": 1, "7": 2}}}, "7, expected 6"),
        ({"policy": "step", "policy_options": {"steps": {"0-5": 1, "5-7": 2}}}, "5, expected 6"),
        ({"policy": "step", "policy_options": {"steps": {"0+": 1, "5-7": 2}}}, "an open end"),
        ({"policy": "step", "policy_options": {"steps": {"0-5": 3, "6+": 2}}}, "fewer than before"),
        ({"policy": "step", "policy_options": {"steps": {"5-0": 3}}}, "is not a range"),
        ({"policy": "step", "policy_options": {"steps": {"0-5+": 3}}}, "is not a range"),
        ({"policy": "step", "policy_options": {"steps": {"few": 3}}}, "is not a range"),
        ({"policy": "step", "policy_options": {"steps": {"0+": -3}}}, "the workers for 0"),
    ],
    ids=str,
)
def test_bad_policies_are_refused_in_a_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        settings.changed(PoolSettings(), changes)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", policies.NAMES)
def test_every_policy_checks_every_option_it_has(name: str) -> None:
    policy = policies.find(name)
    assert name == policy.NAME
    assert policy.FIELDS.keys() == policy.Options().as_dict().keys()
    usual = PoolSettings(policy=name, policy_options=policy.Options().as_dict())
    policies.check(usual)
    assert settings.changed(PoolSettings(), {"policy": name}).policy == name


def test_options_of_another_policy_are_refused() -> None:
    stepping = settings.changed(
        PoolSettings(), {"policy": "step", "policy_options": {"steps": {"0+": 1}}}
    )
    with pytest.raises(InvalidInput, match="headroom: it has no option 'steps'"):
        settings.changed(stepping, {"policy": "headroom"})
    settings.changed(stepping, {"policy": "headroom", "policy_options": {}})


# -- tenants at their limit -----------------------------------------------------------------------


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "fixed"])
def test_nobody_is_launched_for_tenants_at_their_limit(policy: str) -> None:
    held = seen(100, busy=2, idle=1, held=100, oldest_ready_seconds=1.0)
    decision = policies.decide(held, pool_settings(policy))
    assert decision.launch == 0
    assert "100" in decision.reason
    assert "tenants at their limit" in decision.reason
    assert decision.inputs["held"] == 100


@pytest.mark.parametrize("options", [{}, {"wait_seconds": 30, "cold_start_seconds": 0.1}])
def test_as_many_are_launched_as_limits_allow(options: dict[str, float]) -> None:
    decision = policies.decide(seen(16, held=14), pool_settings("slo", **options))
    assert decision.launch == 2
    assert decision.reason == (
        "16 waiting, 14 of them of tenants at their limit, 0 active (0 idle), 0 starting, "
        "maximum 10: launch 2"
    )
