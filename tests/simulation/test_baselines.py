"""The rules of others, against small cases worked out by hand from their documents."""

from __future__ import annotations

from array import array
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprat.core.errors import InvalidInput
from sprat.simulation import contenders
from sprat.simulation.baselines import dask, keda, knative, scaled_job, tracking
from sprat.simulation.fleet import SimulatedFleet, Terms
from sprat.simulation.replay import replay
from sprat.simulation.trace import Trace


def burst(n: int, at: float = 1.0, seconds: float = 1000.0) -> Trace:
    return Trace(name="burst", arrivals=array("d", [at] * n), services=array("d", [seconds] * n))


def sizes(trace: Trace, sizer: object, **terms: float) -> dict[float, int]:
    """How many there are after each pass."""
    seen: dict[float, int] = {}

    def watch(fleet: SimulatedFleet) -> None:
        seen[fleet.now] = fleet.size

    replay(trace, sizer, Terms(**{"cold_start_seconds": 0.0, **terms}), watch=watch)  # type: ignore[arg-type]
    return seen


@pytest.mark.parametrize(
    ("length", "target", "size", "expected"),
    [
        (10, 5, 1, 2),
        (11, 5, 1, 3),
        (21, 10, 2, 2),  # 5 % more than the target is within the tolerance
        (23, 10, 2, 3),
        (0, 5, 4, 1),  # the autoscaler itself never goes to nothing
    ],
)
def test_the_pod_autoscaler_divides_the_queue(
    length: int, target: float, size: int, expected: int
) -> None:
    assert keda.wanted(length, target, size) == expected


def test_keda_doubles_or_adds_four_each_15_seconds() -> None:
    seen = sizes(burst(100), keda.Keda(keda.Options(target=1.0)))
    assert [seen[t] for t in (0, 15, 30, 45, 60, 75, 90, 105)] == [0, 0, 5, 10, 20, 40, 80, 100]


def test_keda_shrinks_after_its_window_and_leaves_after_its_cooldown() -> None:
    options = keda.Options(target=1.0, stabilisation_seconds=60.0, cooldown_seconds=120.0)
    seen = sizes(burst(4, seconds=35.0), keda.Keda(options))
    # the jobs ran from 30 to 65. Wanted last: 4 at 60. Active last: 60.
    assert [seen[t] for t in (30, 60, 75, 120, 135, 180)] == [4, 4, 4, 4, 1, 1]
    assert seen[210] == 0


@pytest.mark.parametrize(
    ("strategy", "length", "unfinished", "pending", "expected"),
    [
        ("default", 10, 4, 1, 6),  # the length includes what runs
        ("default", 3, 4, 0, 0),
        ("accurate", 10, 4, 1, 9),  # the length is what waits: those pending will take one each
        ("accurate", 98, 4, 1, 96),  # at the maximum of 100
        ("eager", 10, 4, 1, 10),
        ("eager", 99, 4, 1, 95),
    ],
)
def test_scaled_jobs_are_created_by_their_strategy(
    strategy: str, length: int, unfinished: int, pending: int, expected: int
) -> None:
    options = scaled_job.Options(strategy=strategy)
    assert scaled_job.launches(options, length, unfinished, pending) == expected


def test_a_scaled_job_takes_one_message() -> None:
    conditions = contenders.Conditions(cold_start_seconds=10.0, wait_target=None)
    seen = contenders.run(burst(3, seconds=5.0), "scaled-job", {}, conditions)
    # all three are created at 30 and start at 40
    assert (seen.launches, seen.paid_seconds, seen.wait_max) == (3, 3 * 15, 39)


def test_knative_sizes_by_the_average_concurrency() -> None:
    seen = sizes(burst(7, at=0.0), knative.Knative(knative.Options()))
    assert seen[2.0] == 10  # 7 jobs at 70 %
    assert set(list(seen.values())[2:]) >= {10}


def test_knative_only_grows_in_panic_and_halves_at_most() -> None:
    trace = Trace(
        name="t", arrivals=array("d", [0.0] * 70), services=array("d", [10.0] * 69 + [400.0])
    )
    seen = sizes(trace, knative.Knative(knative.Options()))
    assert seen[2.0] == 100
    assert seen[60.0] == 100  # the panic goes on for a stable window
    falling = [n for t, n in seen.items() if 60 < t < 90]
    assert all(b >= a // 2 for a, b in pairwise(falling))
    assert min(falling) < 100


def test_knative_keeps_its_last_worker_for_the_grace_period() -> None:
    seen = sizes(burst(1, at=0.0, seconds=4.0), knative.Knative(knative.Options()))
    last = max(t for t, n in seen.items() if n)
    assert 64 + 28 <= last <= 64 + 34  # no load in the window from 64 on


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [(4, 2), (100, 50), (1, 1)],
)
def test_dask_asks_for_the_expected_work_over_the_target_duration(jobs: int, expected: int) -> None:
    sizer = dask.Dask(dask.Options(target_seconds=1.0))
    fleet = SimulatedFleet(burst(jobs, at=0.0), Terms(cold_start_seconds=5.0))
    fleet.advance(0.0)
    assert sizer.target(fleet) == expected  # half a second each, while none has ended


def test_dask_closes_idle_workers_after_three_recommendations() -> None:
    seen = sizes(burst(1, at=0.0, seconds=2.5), dask.Dask(dask.Options()))
    assert [seen[t] for t in (1.0, 3.0, 4.0, 5.0)] == [1, 1, 1, 0]


def test_target_tracking_waits_for_its_minutes() -> None:
    seen = sizes(burst(10, seconds=600.0), tracking.Tracking(tracking.Options()))
    assert [seen[60.0 * m] for m in (1, 2, 3)] == [0, 0, 10]
    assert [seen[60.0 * m] for m in (12, 26, 27)] == [10, 10, 0]


def test_the_oracle_launches_ahead_and_reuses_workers() -> None:
    trace = Trace(name="t", arrivals=array("d", [100, 105]), services=array("d", [10, 10]))
    conditions = contenders.Conditions(cold_start_seconds=40.0, wait_target=30.0)
    seen = contenders.run(trace, "oracle", {}, conditions)
    assert (seen.launches, seen.paid_seconds, seen.wait_max) == (1, 60, 5)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("kedda", {}, "did you mean keda?"),
        ("keda", {"targett": 1}, "did you mean target?"),
        ("keda", {"target": -1}, "must be a number from 0.001 on"),
        ("keda", {"counts_running": 3}, "must be like True"),
        ("scaled-job", {"strategy": "hasty"}, "no strategy 'hasty'"),
        ("headroom", {"nonsense": 1}, "no option 'nonsense'"),
    ],
)
def test_an_unknown_rule_or_option_is_refused(
    name: str, options: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words.replace("?", r"\?")):
        contenders.run(burst(1), name, options, contenders.Conditions())


@settings(deadline=None, max_examples=60)
@given(
    jobs=st.lists(st.tuples(st.integers(0, 900), st.floats(0, 200)), min_size=1, max_size=60),
    name=st.sampled_from(sorted(contenders.BASELINES)),
    cold=st.sampled_from([0.0, 40.0]),
    high=st.integers(1, 30),
)
def test_every_rule_does_every_job_once_within_its_bounds(
    jobs: list[tuple[int, float]], name: str, cold: float, high: int
) -> None:
    ordered = sorted(jobs)
    trace = Trace(
        name="t",
        arrivals=array("d", [a for a, _ in ordered]),
        services=array("d", [s for _, s in ordered]),
    )
    conditions = contenders.Conditions(cold_start_seconds=cold, max_workers=high)
    seen = contenders.run(trace, name, {}, conditions)
    assert (seen.jobs, seen.interrupted) == (len(jobs), 0)
    assert seen.peak_workers <= high
    assert seen.paid_seconds >= seen.useful_seconds - 1e-6
    assert 0 <= seen.wait_p50 <= seen.wait_p95 <= seen.wait_max
    assert contenders.run(trace, name, {}, conditions) == seen
