"""When an attendant looks at its pool again: it relies on no process that may be dead."""

from __future__ import annotations

import pytest

from sprat.core import model
from sprat.core.leases import TOUCH_PART, LeaseState, after_gap
from sprat.launchers.process.attendant import MOST_FAILURES, SOON_SECONDS, look_again_in

NOW = 1000.0
LEASE = 8.0
SETTINGS = model.PoolSettings(policy="queue-depth", max_workers=2)


def worker(
    heard_ago: float, *, status: str = model.ACTIVE, started_ago: float = 100.0, left: float = LEASE
) -> model.WorkerRecord:
    return model.WorkerRecord(
        worker_id="w1",
        status=status,
        started_at=NOW - started_ago,
        last_heartbeat=NOW - heard_ago,
        lease_seconds=LEASE,
        lease_until=NOW + left,
    )


def look(
    *workers: model.WorkerRecord,
    pending: int = 1,
    claimed: int = 0,
    ours: tuple[str, ...] = (),
    called_ago: float = 5.0,
    **about: object,
) -> float | None:
    snapshot = model.Snapshot(
        pool="papers",
        group=None,
        version=1,
        now=NOW,
        counts=model.Counts(pending=pending, claimed=claimed),
        workers=workers,
        stats=model.Stats(seconds=60.0),
    ).replace(**about)
    return look_again_in(snapshot, SETTINGS, ours=ours, called_ago=called_ago)


def test_a_pool_without_work_needs_no_look() -> None:
    assert look(worker(60.0), pending=0) is None


def test_a_worker_that_was_heard_after_the_call_is_relied_on() -> None:
    assert look(worker(heard_ago=4.0, left=LEASE - 4.0)) is None


def test_one_that_was_not_is_looked_at_several_times_per_lease() -> None:
    assert look(worker(heard_ago=6.0, left=LEASE - 6.0)) == TOUCH_PART * LEASE
    assert look(worker(heard_ago=6.0), pending=0, claimed=1) == TOUCH_PART * LEASE


def test_the_last_look_comes_when_its_lease_has_ended() -> None:
    assert look(worker(heard_ago=7.5, left=0.5)) == pytest.approx(0.5 + SOON_SECONDS)


def test_a_nest_sees_its_own_workers_end_and_need_not_look() -> None:
    assert look(worker(heard_ago=6.0), ours=("w1",)) is None


def test_a_launch_that_was_only_recorded_is_not_relied_on() -> None:
    """Its starter may have died after it had recorded it, even if that was after the call."""
    launch = worker(1.0, status=model.STARTING, started_ago=1.0)
    assert look(launch) == TOUCH_PART * LEASE
    prepared = worker(0.5, status=model.STARTING, started_ago=1.0)
    assert look(prepared) is None


def test_delayed_work_is_looked_at_when_it_is_due() -> None:
    assert look(next_due_seconds=30.0, counts=model.Counts(pending=1, delayed=1)) == 30.0


def test_a_paused_pool_is_looked_at_when_the_pause_ends() -> None:
    assert look(paused=True, paused_seconds=12.0) == 12.0
    assert look(paused=True) is None


def test_failing_launches_are_tried_again_up_to_a_number() -> None:
    failed = {"launch_failures": 3, "last_launch_failure_at": NOW - 1.0}
    assert look(**failed) == pytest.approx(3.0)
    assert look(**{**failed, "launch_failures": MOST_FAILURES}) is None


def test_ready_work_without_any_worker_is_looked_at_within_a_second() -> None:
    after = look()
    assert after is not None
    assert after <= 1.0


@pytest.mark.parametrize("latency", [0.0, 0.005, 0.05, 0.5])
def test_its_looks_leave_no_gap_that_would_extend_a_dead_lease(latency: float) -> None:
    dead = LeaseState(worker_id="w1", seconds=LEASE, until=LEASE)
    now = 0.0
    while now < LEASE:
        seconds = look(worker(heard_ago=60.0, left=LEASE - now))
        assert seconds is not None
        marked_at, now = now, now + seconds + latency
        assert after_gap([dead], marked_at=marked_at, now=now) == []
