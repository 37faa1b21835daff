"""What holds for every policy, whatever was seen."""

from __future__ import annotations

from itertools import pairwise

import pytest
from fleets_seen import NOW, POLICIES, after, choices, pool_settings, seen, snapshots
from hypothesis import given
from hypothesis import strategies as st

from sprat.core.model import ACTIVE, STARTING, PoolSettings, Snapshot, Stats
from sprat.scaling import policies

SHRINKING = ("slo", "pending-per-worker", "headroom", "step", "latency", "fixed")
BY_BACKLOG = ("slo", "queue-depth", "pending-per-worker", "headroom", "step", "fixed")


def counted(snapshot: Snapshot) -> int:
    return sum(w.status in (STARTING, ACTIVE) for w in snapshot.workers)


def busy(snapshot: Snapshot) -> int:
    return sum(w.status == ACTIVE and w.claims > 0 for w in snapshot.workers)


@given(snapshots, choices())
def test_a_decision_adds_up(before: Snapshot, settings: PoolSettings) -> None:
    decision = policies.decide(before, settings)
    assert decision.policy == settings.policy
    assert decision.reason
    assert decision.current == counted(before)
    assert decision.desired == decision.current + decision.launch - len(decision.drain)
    assert not (decision.launch and decision.drain)
    change = (decision.desired > decision.current) - (decision.desired < decision.current)
    assert decision.direction == {1: "up", 0: "hold", -1: "down"}[change]
    assert len(set(decision.drain)) == len(decision.drain)


@given(snapshots, choices())
def test_never_launches_beyond_the_maximum(before: Snapshot, settings: PoolSettings) -> None:
    decision = policies.decide(before, settings)
    assert not decision.launch or decision.desired <= decision.max_workers <= settings.max_workers


@given(snapshots, choices(SHRINKING))
def test_fleet_is_within_its_bounds_after_one_decision(
    before: Snapshot, settings: PoolSettings
) -> None:
    calm = before.replace(launch_failures=0)
    decision = policies.decide(calm, settings)
    assert settings.min_workers <= decision.desired <= settings.max_workers


@given(snapshots, choices())
def test_nobody_busy_is_drained_unless_above_the_maximum(
    before: Snapshot, settings: PoolSettings
) -> None:
    """Behaviour 3.4: never below the busy workers."""
    decision = policies.decide(before, settings)
    drained = [w for w in before.workers if w.worker_id in decision.drain]
    assert all(w.status in (STARTING, ACTIVE) for w in drained)
    if decision.current <= decision.max_workers:
        assert not any(w.claims for w in drained)
        assert decision.desired >= busy(before)
    elif any(w.claims for w in drained):
        assert all(w.worker_id in decision.drain for w in before.workers if is_idle(w))


def is_idle(worker: object) -> bool:
    return worker.status in (STARTING, ACTIVE) and not worker.claims  # type: ignore[attr-defined]


@given(snapshots, choices(SHRINKING))
def test_launches_are_called_off_before_idle_workers_are_drained(
    before: Snapshot, settings: PoolSettings
) -> None:
    decision = policies.decide(before, settings)
    drained = [w for w in before.workers if w.worker_id in decision.drain]
    if any(w.status == ACTIVE and not w.is_suspended for w in drained):
        assert all(w.worker_id in decision.drain for w in before.workers if w.status == STARTING)


@given(snapshots, choices(BY_BACKLOG), st.integers(1, 40))
def test_more_backlog_never_means_fewer_workers(
    before: Snapshot, settings: PoolSettings, more: int
) -> None:
    """The latency policy is left out: it moves by a step, up or down."""
    fuller = before.replace(counts=before.counts.replace(pending=before.counts.pending + more))
    few, many = policies.decide(before, settings), policies.decide(fuller, settings)
    assert many.desired >= few.desired


@given(snapshots, choices())
def test_deciding_again_at_once_changes_nothing(before: Snapshot, settings: PoolSettings) -> None:
    calm = before.replace(launch_failures=0)
    first = policies.decide(calm, settings)
    second = policies.decide(after(calm, first), settings)
    assert second.direction == "hold"


@given(snapshots, choices(), st.lists(st.floats(0.1, 400), max_size=12))
def test_constant_load_does_not_make_the_fleet_flap(
    before: Snapshot, settings: PoolSettings, pauses: list[float]
) -> None:
    """With the same work waiting and running, a fleet goes one way and then stays."""
    now = before.replace(launch_failures=0)
    directions = []
    for pause in pauses:
        decision = policies.decide(now, settings)
        directions.append(decision.direction)
        now = after(now, decision)
        now = now.replace(now=now.now + pause)
    moves = [d for d in directions if d != "hold"]
    assert len(set(moves)) <= 1


@given(choices(("pending-per-worker", "headroom", "step")), st.data())
def test_two_changes_down_are_the_delay_apart(settings: PoolSettings, data: st.DataObject) -> None:
    """Behaviour 3.5, over a history of any load."""
    now = seen(idle=data.draw(st.integers(0, settings.max_workers)))
    downs = []
    for _ in range(12):
        ready = data.draw(st.integers(0, 30))
        now = now.replace(counts=now.counts.replace(pending=ready))
        decision = policies.decide(now, settings)
        if decision.direction == "down":
            downs.append(now.now)
        now = after(now, decision)
        arrived = tuple(
            w.replace(status=ACTIVE) if w.status == STARTING else w for w in now.workers
        )
        now = now.replace(workers=arrived, now=now.now + data.draw(st.floats(0, 400)))
    delay = settings.policy_options["scale_down_delay_seconds"]
    assert all(b - a >= delay - 1e-6 for a, b in pairwise(downs))


@pytest.mark.parametrize("policy", [p for p in POLICIES if p != "fixed"])
def test_a_fleet_scales_from_zero_and_back(policy: str) -> None:
    """Behaviour 3.11: scale to zero and back, with a minimum of 0."""
    settings = pool_settings(policy)
    assert policies.decide(seen(), settings).direction == "hold"
    up = policies.decide(seen(1), settings)
    assert (up.direction, up.desired >= 1) == ("up", True)
    working = after(seen(1), up)
    assert policies.decide(working, settings).drain == ()  # who is on the way is let arrive
    if policy not in ("slo", "predictive", "queue-depth"):  # their workers leave by themselves
        moment, fleet = NOW, seen(idle=3)
        while fleet.workers and moment < NOW + 10_000:
            fleet = after(fleet, policies.decide(fleet.replace(now=moment), settings))
            fleet = fleet.replace(workers=tuple(w for w in fleet.workers if w.status == ACTIVE))
            moment += 10
        assert fleet.workers == ()


@given(st.integers(1, 20), st.integers(1, 5))
def test_latency_policy_does_not_call_off_workers_that_are_on_their_way(
    ready: int, starting: int
) -> None:
    """With a minimum of 0, counting them as idle would start and stop them for ever."""
    settings = pool_settings("latency", scale_decision_interval_ms=0)
    decision = policies.decide(seen(ready, starting=starting), settings)
    assert len(decision.drain) <= max(0, starting - ready)


def test_latency_policy_uses_what_the_store_measured() -> None:
    slow = Stats(seconds=600.0, starts=9, finished=9, wait_p95=1.5, run_p95=1.0)
    decision = policies.decide(seen(busy=2, idle=2, stats=slow), pool_settings("latency"))
    assert (decision.direction, decision.desired) == ("up", 6)
    assert "p95 latency 2500 ms > 2000 ms" in decision.reason
    assert decision.inputs["p95_latency_ms"] == 2500
