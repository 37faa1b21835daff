"""The replay: small cases by hand, and what must hold for every trace and every policy."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprat.core import model
from sprat.scaling.policies import NAMES
from sprat.simulation.fleet import SimulatedFleet, Terms
from sprat.simulation.policy import simulate
from sprat.simulation.replay import ReplayResult, replay
from sprat.simulation.trace import Trace


class Keep:
    """Always the same size."""

    poll_seconds = 10.0
    settle_seconds = 0.0
    quiet_seconds = float("inf")

    def __init__(self, size: int) -> None:
        self.size = size

    def poll(self, fleet: SimulatedFleet) -> None:
        fleet.resize(0 if fleet.done == fleet.jobs else self.size)


def trace(*jobs: tuple[float, float]) -> Trace:
    return Trace(
        name="t",
        arrivals=array("d", (a for a, _ in jobs)),
        services=array("d", (s for _, s in jobs)),
    )


def test_jobs_wait_for_the_cold_start_and_for_each_other_in_order() -> None:
    seen = replay(trace((0, 5), (1, 5), (20, 5)), Keep(1), Terms(cold_start_seconds=8))
    # ready at 8: waits 8, then 13 - 1 = 12, then the third finds it idle at 20
    assert (seen.wait_p50, seen.wait_max, seen.wait_mean) == (8, 12, pytest.approx(20 / 3))
    assert seen.paid_seconds == 30  # from the first pass to the one after the last end at 25
    assert seen.cost == 2.0
    assert (seen.ups, seen.downs, seen.launches, seen.peak_workers) == (1, 1, 1, 1)


def test_a_drained_worker_ends_its_job_and_takes_no_other() -> None:
    class DrainAtTen(Keep):
        def poll(self, fleet: SimulatedFleet) -> None:
            if fleet.now in (0, 20):
                fleet.resize(1)
            if fleet.now in (10, 50):
                fleet.resize(0)

    seen = replay(trace((0, 15), (1, 5)), DrainAtTen(1), Terms(cold_start_seconds=0))
    assert seen.jobs == 2
    assert seen.wait_max == 19  # the second waits for the worker launched at 20
    assert seen.paid_seconds == 15 + 30


def test_workers_that_idle_leave_but_the_minimum_stays() -> None:
    terms = Terms(cold_start_seconds=0, idle_seconds=4, min_workers=1)
    seen = replay(trace((0, 5), (0, 5)), Keep(2), terms)
    assert seen.paid_seconds == 9 + 10  # one left at 5 + 4, the other is there at the end


def test_a_worker_leaves_after_its_last_job() -> None:
    terms = Terms(cold_start_seconds=0, max_jobs=1, max_workers=1)
    seen = replay(trace((0, 2), (0, 2)), Keep(1), terms)
    assert (seen.launches, seen.paid_seconds, seen.wait_max) == (2, 4, 10)


def test_a_push_that_finds_nobody_idle_calls_for_a_pass() -> None:
    class Grow(Keep):
        def poll(self, fleet: SimulatedFleet) -> None:
            fleet.resize(fleet.waiting + fleet.busy)

    jobs = trace((3, 2), (3.5, 2))
    slow = replay(jobs, Grow(0), Terms(cold_start_seconds=1))
    quick = replay(jobs, Grow(0), Terms(cold_start_seconds=1, on_push=True))
    assert (slow.wait_max, quick.wait_max) == (8.0, 1.5)  # the second pass is a second later


def test_a_push_that_somebody_is_on_the_way_for_does_not() -> None:
    class Two(Keep):
        def poll(self, fleet: SimulatedFleet) -> None:
            fleet.resize(2)

    jobs = trace((1, 2), (4, 2), (8, 2), (20, 2))
    waiting = replay(jobs, Two(0), Terms(cold_start_seconds=30, on_push=True))
    alone = replay(jobs, Two(0), Terms(cold_start_seconds=30))
    assert waiting.passes == alone.passes + 1  # for the third, which two do not take


@pytest.mark.parametrize("options", [{}, {"wait_seconds": 30.0}])
def test_idle_workers_of_the_default_policy_leave_where_starts_are_quick(
    options: dict[str, float],
) -> None:
    jobs = trace(*((60.0 * n, 2.0) for n in range(10)))
    pool = model.PoolSettings(policy_options=options, idle_seconds=1.0)
    seen = simulate(jobs, pool, cold_start_seconds=0.5, on_push=True)
    assert seen.launches == 10
    assert seen.paid_seconds == pytest.approx(10 * (0.5 + 2.0 + 1.0))


def test_idle_workers_of_the_default_policy_keep_the_minimum() -> None:
    pool = model.PoolSettings(min_workers=1, idle_seconds=1.0)
    seen = simulate(trace((0.0, 2.0), (60.0, 2.0)), pool, cold_start_seconds=0.5, on_push=True)
    assert seen.launches == 1


def test_workers_of_the_default_policy_do_not_stay_where_no_start_was_measured() -> None:
    """Their starts are over between two passes, so that they are taken to be quick."""
    pool = model.PoolSettings(policy_options={"wait_seconds": 30.0}, idle_seconds=1.0)
    jobs = trace(*((60.0 * n, 2.0) for n in range(10)))
    assert simulate(jobs, pool, cold_start_seconds=2.0, on_push=True).cost < 3.0


BATCH_WAIT = 30.0


def test_a_batch_of_short_jobs_does_not_make_those_after_it_late() -> None:
    """Jobs of 20 s come all day, and every hour a thousand short ones at once. In the ten minutes
    after it, and in the note about them, the short ones are nearly all jobs there are."""
    steady = [(10.0 * n, 20.0) for n in range(4320)]
    short = [(3600.0 * n + 5.0, 0.5) for n in range(1, 12) for _ in range(1000)]
    batch = [(3600.0 * n + 300.0, 20.0) for n in range(1, 12) for _ in range(100)]
    jobs = trace(*sorted(steady + short + batch))
    options = {"wait_seconds": BATCH_WAIT, "cold_start_seconds": 2.0}
    pool = model.PoolSettings(policy_options=options, max_workers=1000)
    seen = simulate(jobs, pool, cold_start_seconds=2.0, wait_target=BATCH_WAIT, on_push=True)
    assert seen.late_share is not None
    assert seen.late_share < 0.02


def test_passes_without_anything_to_decide_are_left_out() -> None:
    seen = replay(trace((0, 1), (1000, 1)), Keep(1), Terms(cold_start_seconds=0))
    assert seen.passes < 10


jobs_of = st.lists(
    st.tuples(st.floats(0, 600).map(lambda x: round(x, 1)), st.floats(0, 90)),
    min_size=1,
    max_size=40,
).map(lambda jobs: trace(*sorted(jobs)))


@settings(deadline=None)
@given(
    jobs=jobs_of,
    policy=st.sampled_from(sorted(NAMES)),
    cold=st.sampled_from([0.0, 3.0, 45.0]),
    low=st.integers(0, 2),
    high=st.integers(2, 9),
    on_push=st.booleans(),
)
def test_every_policy_does_every_job_once_within_its_bounds(
    jobs: Trace, policy: str, cold: float, low: int, high: int, on_push: bool
) -> None:
    pool = model.PoolSettings(policy=policy, min_workers=low, max_workers=high)
    sizes: list[int] = []
    with_a_job: list[int] = []
    leave = SimulatedFleet._leave

    def leave_seen(fleet: SimulatedFleet, worker: int) -> None:
        with_a_job.extend(worker for _, busy, _ in fleet.running if busy == worker)
        leave(fleet, worker)

    def run() -> ReplayResult:
        return simulate(
            jobs,
            pool,
            cold_start_seconds=cold,
            on_push=on_push,
            watch=lambda fleet: sizes.append(fleet.size),
        )

    with pytest.MonkeyPatch.context() as monkey:
        monkey.setattr(SimulatedFleet, "_leave", leave_seen)
        seen = run()
    assert not with_a_job  # nobody left in the middle of a job
    assert (seen.jobs, seen.interrupted) == (jobs.jobs, 0)
    assert max(sizes) <= high
    assert seen.peak_workers <= high
    assert seen.paid_seconds >= seen.useful_seconds - 1e-6
    assert 0 <= seen.wait_p50 <= seen.wait_p95 <= seen.wait_p99 <= seen.wait_max
    assert run() == seen
