"""The slo policy: a target is stated, and what it decides follows."""

from __future__ import annotations

from typing import Any

import pytest
from fleets_seen import NOW, after, pool_settings, seen, snapshots
from hypothesis import given

from sprat.config import settings as pool_checks
from sprat.core import histogram
from sprat.core.errors import InvalidInput
from sprat.core.model import (
    ACTIVE,
    STARTING,
    PoolSettings,
    Snapshot,
    Stats,
    StatsBucket,
    WorkerRecord,
)
from sprat.scaling import policies
from sprat.scaling.slo import estimates, policy
from sprat.scaling.slo.memory import (
    ArrivalCounts,
    LearnedMargin,
    LoadAverages,
    Memory,
    RunTimes,
    StartTimes,
    read,
    write,
)
from sprat.scaling.slo.variants import MEMORIES

TEN_SECONDS = Stats(seconds=600.0, starts=60, finished=60, run_mean=10.0, run_scv=1.0)


def load(slow: float, *, fast: float | None = None, at: float = NOW) -> LoadAverages:
    return LoadAverages(fast=slow if fast is None else fast, slow=(slow,) * len(MEMORIES), at=at)


def decided(before: Snapshot, high: int = 100, **options: Any) -> Any:
    given = {"wait_seconds": 120, "cold_start_seconds": 40, **options}
    return policies.decide(before, pool_settings("slo", 0, high, **given))


# -- starts that are free -----------------------------------------------------------------------


@given(snapshots)
def test_where_starts_are_free_it_is_queue_depth(before: Snapshot) -> None:
    """A forked worker costs milliseconds: one for each item that nobody takes, at once."""
    by_depth = policies.decide(before, pool_settings("queue-depth"))
    made = policies.decide(before, PoolSettings(policy="slo"))
    assert made.replace(memory={}) == by_depth.replace(policy="slo")


def test_the_default_policy_starts_workers_at_once() -> None:
    decision = policies.decide(seen(3), PoolSettings())
    assert (decision.policy, decision.launch) == ("slo", 3)


def test_a_stated_target_does_not_make_forks_wait() -> None:
    decision = policies.decide(seen(3, busy=2), pool_settings("slo", wait_seconds=600))
    assert decision.launch == 3


# -- before the first start was measured --------------------------------------------------------

TARGET = pool_settings("slo", 0, 40, wait_seconds=20)


def launched(n: int, seconds: float, **about: Any) -> Snapshot:
    """So many workers, launched so long ago."""
    workers = tuple(
        WorkerRecord(worker_id=f"s{one}", status=STARTING, started_at=NOW - seconds)
        for one in range(n)
    )
    return seen(40, **about).replace(workers=workers)


def test_first_starts_are_no_more_than_there_are_cores() -> None:
    decision = policies.decide(seen(40, cores=4), TARGET)
    assert (decision.direction, decision.launch, decision.desired) == ("up", 4, 4)
    assert decision.reason.endswith("; launch 4 of 40: no start has been measured yet")
    assert policies.decide(seen(40, cores=1), TARGET).launch == 2


def test_passes_before_the_first_start_is_over_launch_no_more() -> None:
    decision = policies.decide(launched(4, 8.0, cores=4), TARGET)
    assert (decision.direction, decision.launch) == ("hold", 0)


def test_minimum_is_launched_although_no_start_was_measured() -> None:
    low = TARGET.replace(min_workers=7)
    assert policies.decide(seen(40, cores=4), low).launch == 7


def test_limit_ends_with_the_first_start() -> None:
    assert policies.decide(seen(40, busy=1, cores=4), TARGET).launch == 39
    before = Stats(seconds=600.0, starts=1)
    assert policies.decide(seen(40, cores=4, stats=before), TARGET).launch == 40


def test_a_stated_start_needs_no_measurement() -> None:
    stated = pool_settings("slo", 0, 40, wait_seconds=20, cold_start_seconds=0.5)
    assert policies.decide(seen(40, cores=4), stated).launch == 40


def test_the_pass_that_measures_the_first_start_goes_by_it() -> None:
    """8 s for a start and 20 s to wait: with jobs of half a second few are needed."""
    noted = policies.decide(launched(4, 2.0, cores=4), TARGET).memory
    active = tuple(
        WorkerRecord(worker_id=f"s{n}", status=ACTIVE, claims=1, started_at=NOW + 6.0)
        for n in range(4)
    )
    short = Stats(seconds=600.0, starts=10, finished=10, run_mean=0.5)
    now = seen(40, now=NOW + 6.0, cores=4, memory=noted, stats=short).replace(workers=active)
    decision = policies.decide(now, TARGET)
    assert decision.inputs["cold_start"] == 8.0
    assert decision.launch <= 2


def test_a_pass_follows_as_soon_as_the_first_start_may_be_over() -> None:
    assert policies.look_again_in(launched(4, 0.01, cores=4), TARGET) == 0.05
    assert policies.look_again_in(launched(4, 8.0, cores=4), TARGET) == 2.0
    assert policies.look_again_in(seen(40, busy=4, cores=4), TARGET) is None
    assert policies.look_again_in(launched(40, 0.01, cores=4), TARGET) is None


# -- a target longer than a cold start ----------------------------------------------------------


def test_an_empty_fleet_starts_for_the_first_item() -> None:
    first = decided(seen(1))
    assert first.launch == 1
    assert "a job takes perhaps 120 s, a start 40 s" in first.reason


def test_workers_that_will_be_free_in_time_are_waited_for() -> None:
    """10 at work end about one job a second: 30 waiting items are started well within 2 minutes."""
    decision = decided(seen(30, busy=10, stats=TEN_SECONDS, oldest_ready_seconds=5.0))
    assert decision.direction == "hold"
    assert "enough to start 95 % within 120 s" in decision.reason


def test_the_older_the_items_the_more_are_launched() -> None:
    minutes = TEN_SECONDS.replace(run_mean=100.0)
    sizes = [
        decided(seen(1, busy=3, stats=minutes, oldest_ready_seconds=age)).desired
        for age in (0.0, 40.0, 60.0, 79.0)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_somebody_is_on_the_way_when_an_item_is_late_whatever_was_expected() -> None:
    """The workers that should have been free by now have unusually long jobs."""
    late = seen(1, busy=3, stats=TEN_SECONDS, oldest_ready_seconds=125.0)
    assert decided(late).launch == 1
    assert decided(after(late, decided(late))).launch == 0


def test_a_tighter_target_takes_more_workers() -> None:
    full = seen(400, busy=5, stats=TEN_SECONDS, oldest_ready_seconds=1.0)
    sizes = [decided(full, wait_seconds=wait).desired for wait in (300, 120, 60)]
    assert sizes == sorted(set(sizes))
    by_percentile = [decided(full, percentile=p).desired for p in (50, 95, 99.9)]
    assert by_percentile == sorted(by_percentile)


def test_short_jobs_take_fewer_workers_than_items() -> None:
    assert decided(seen(400, stats=TEN_SECONDS)).launch < 100
    long = TEN_SECONDS.replace(run_mean=5000.0)
    assert decided(seen(50, stats=long)).launch == 50


def test_a_worker_that_takes_one_job_only_is_not_counted_on_for_another() -> None:
    one_job = pool_settings("slo", 0, 1000, wait_seconds=120, cold_start_seconds=40)
    one_job = one_job.replace(max_jobs=1)
    before = seen(30, busy=10, stats=TEN_SECONDS, oldest_ready_seconds=5.0)
    decision = policies.decide(before, one_job)
    assert decision.launch == 30
    assert "each worker takes one job" in decision.reason


def test_those_on_the_way_are_not_launched_twice() -> None:
    before = seen(5)
    first = decided(before)
    assert decided(after(before, first).replace(now=NOW + 20)).launch == 0


def test_idle_workers_leave_when_nothing_waits_and_no_busy_one_does() -> None:
    decision = decided(seen(busy=3, idle=2))
    assert decision.desired == 3
    assert set(decision.drain) == {"i0", "i1"}


def test_nobody_is_launched_for_what_idle_workers_do_not_take() -> None:
    """A tenant is at its limit: more workers would not help."""
    decision = decided(seen(50, busy=2, idle=1, oldest_ready_seconds=30.0))
    assert decision.direction == "hold"
    assert "those who are idle do not take it" in decision.reason


def test_a_paused_pool_launches_nobody() -> None:
    assert decided(seen(50, paused=True)).launch == 0


def test_a_backlog_is_finished_within_an_hour() -> None:
    """1,000 jobs of 10 s are 10,000 s of work: three workers take 56 minutes, with their start."""
    options = {"finish_seconds": 3600, "cold_start_seconds": 40}
    settings = pool_settings("slo", 0, 100, **options)
    decision = policies.decide(seen(1000, stats=TEN_SECONDS), settings)
    assert 3 <= decision.launch <= 4
    assert decision.reason.endswith(f"to be done within 3600 s takes {decision.launch} more")
    late = policies.decide(seen(1000, stats=TEN_SECONDS, oldest_ready_seconds=3000), settings)
    assert late.launch > 2 * decision.launch


# -- a target shorter than a cold start ---------------------------------------------------------


def test_a_target_that_launches_cannot_meet_is_said_and_workers_are_kept() -> None:
    """About as many as had work: more once starts were late."""
    memory = Memory(loads=load(9.0))
    before = seen(busy=3, idle=12, memory=write(memory))
    decision = decided(before, wait_seconds=10)
    assert "cannot be met by launches at this cold start of 40 s" in decision.reason
    assert decision.inputs["floor"] == decision.desired == 7
    margin = LearnedMargin(margin=1.0, at=NOW - 5, usual=50.0, since=NOW - 5)
    late = before.replace(memory=write(memory.replace(margin=margin)))
    assert decided(late, wait_seconds=10).desired == 10


def test_kept_workers_go_when_there_has_been_no_load_for_long() -> None:
    before = seen(idle=6, memory=write(Memory(loads=load(9.0, at=NOW - 3600))))
    assert decided(before, wait_seconds=10).desired == 0


def test_a_rise_is_met_with_launches_for_those_who_will_come() -> None:
    """Behind 10 who wait another 40 will have come before a launch has caught up: 1.6 a second."""
    counts = ArrivalCounts(quick=1.6, steady=0.1, total=12, live=12, at=NOW)
    rise = seen(10, busy=2, memory=write(Memory(arrivals=counts)), stats=TEN_SECONDS)
    quiet = rise.replace(memory=write(Memory(arrivals=counts.replace(quick=0.1))))
    made = decided(rise, wait_seconds=30)
    assert made.launch > decided(quiet, wait_seconds=30).launch
    assert "(40 will come meanwhile)" in made.reason
    assert made.inputs["coming"] == 40.0


def test_chance_moves_no_workers_and_a_burst_does() -> None:
    """A load of 25 is at times 30 though nothing has changed; 60 is more than chance."""
    usual, by_chance, burst = (
        decided(seen(busy=20, memory=write(Memory(loads=load(25.0, fast=fast)))), wait_seconds=10)
        for fast in (25.0, 30.0, 60.0)
    )
    floors = [made.inputs["floor"] for made in (usual, by_chance, burst)]
    assert floors[0] == floors[1] < 40 < floors[2]


@pytest.mark.parametrize(
    ("late", "starts", "hours", "is_said"),
    [
        (50.0, 500.0, 1.0, True),
        (20.0, 500.0, 1.0, False),  # as few as may be
        (9.0, 90.0, 1.0, False),  # too few to tell
        (50.0, 500.0, 0.3, False),  # who begins is late
    ],
)
def test_a_target_that_is_missed_with_all_that_is_kept_is_called_so(
    late: float, starts: float, hours: float, is_said: bool
) -> None:
    since = NOW - 5 - 3600 * hours
    margin = LearnedMargin(
        margin=1.0, at=NOW - 5, usual=50.0, late=late, starts=starts, since=since
    )
    memory = Memory(loads=load(9.0, at=NOW - 5), margin=margin)
    made = decided(seen(busy=9, memory=write(memory)), wait_seconds=10)
    if is_said:
        assert made.inputs["verdict"] == "cannot be met at this cold start"
        assert "10.0 % were late lately, with all that is kept" in made.reason
        assert made.reason.endswith("95 % cannot be met at this cold start")
    else:
        assert "verdict" not in made.inputs


# -- what it learns -----------------------------------------------------------------------------


def starting(at: float) -> WorkerRecord:
    return WorkerRecord(worker_id="w1", status=STARTING, started_at=at)


def test_cold_start_is_learned_from_workers_that_arrive() -> None:
    settings = pool_settings("slo", wait_seconds=120)
    early = seen(1).replace(workers=(starting(NOW - 20),))
    first = policies.decide(early, settings)
    arrived = WorkerRecord(worker_id="w1", status=ACTIVE, started_at=NOW + 21, claims=1)
    later = seen(1, now=NOW + 25, memory=first.memory).replace(workers=(arrived,))
    second = policies.decide(later, settings)
    assert second.memory["starts"]["seconds"] == [41.0]
    third = policies.decide(later.replace(memory=second.memory), settings)
    assert third.inputs["cold_start"] == 41.0


def test_quick_starts_correct_a_slow_one() -> None:
    """One hiccup does not make a pool of forked workers wait for ever."""
    settings = pool_settings("slo", wait_seconds=120)
    memory: Any = write(Memory(starts=StartTimes(seconds=(3.0,), at=NOW - 5000)))
    now = NOW
    for n in range(10):
        quick = WorkerRecord(worker_id=f"q{n}", status=ACTIVE, started_at=now + 0.1, claims=1)
        before = seen(now=now + 2, memory=memory, last_up_at=now).replace(workers=(quick,))
        memory = policies.decide(before, settings).memory
        now += 100
    assert policy.cold_start(seen(), read(memory), settings, policy.Options()) <= 1.0


def test_late_starts_make_it_cautious_and_timely_ones_less_so() -> None:
    memory: Any = {}
    zs, launches = [], []
    for n, waited in enumerate([200.0] * 4 + [1.0] * 8):
        now = NOW + 700 * n
        waits = ((histogram.bin_of(waited), 10), (histogram.bin_of(1.0), 50))
        past = [StatsBucket(at=now - 300, seconds=300.0, starts=60, waits=waits)]
        made = decided(seen(60, busy=6, stats=TEN_SECONDS, memory=memory, now=now, history=past))
        memory = made.memory
        zs.append(made.inputs["z"])
        launches.append(made.launch)
    assert zs[1] < zs[2] < zs[4] == max(zs)
    assert zs[-1] < zs[4]
    assert launches[0] < launches[4] > launches[-1]  # earlier, for what may become of it


def test_notes_are_small() -> None:
    before = seen(50, busy=50, starting=30, stats=TEN_SECONDS, now=NOW)
    memory = decided(before).memory
    assert len(str(memory)) < 2000


# -- money --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"finish_seconds": 3600}, {"finish_seconds": 1e-9}, {}])
@pytest.mark.parametrize("start", [0, 0.0, 5e-324])
def test_a_start_that_takes_no_time_is_planned_with(options: dict[str, Any], start: float) -> None:
    settings = pool_settings("slo", 0, 10, cold_start_seconds=start, **options)
    assert 0 < policies.decide(seen(3), settings).desired <= 3


def test_a_budget_bounds_the_fleet_and_the_cost_is_told() -> None:
    money = {"price_per_worker_hour": 0.25, "budget_per_hour": 2.0}
    decision = decided(seen(500, stats=TEN_SECONDS.replace(run_mean=900.0)), **money)
    assert decision.desired == 8
    assert decision.inputs["cost_per_hour"] == 2.0
    free = policies.decide(seen(500), pool_settings("slo", 0, 100, **money))
    assert free.desired == 8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"wait_seconds": -1}, "wait_seconds must be seconds from 0"),
        ({"wait_seconds": 0}, "wait_seconds must be at least 0.001 seconds"),
        ({"finish_seconds": 1e-9}, "finish_seconds must be at least 0.001 seconds"),
        ({"percentile": 101}, "percentile must be a number from 50 to 99.99"),
        ({"percentile": 5}, "percentile must be a number from 50 to 99.99"),
        ({"wait_second": 30}, "it has no option 'wait_second': did you mean wait_seconds?"),
        ({"wait_seconds": 30, "finish_seconds": 60}, "wait_seconds or finish_seconds, not both"),
        ({"budget_per_hour": 5}, "budget_per_hour needs price_per_worker_hour"),
        (
            {"budget_per_hour": 1, "price_per_worker_hour": 2},
            "budget_per_hour 1 pays for 0 workers at 2 an hour each, 1 are needed",
        ),
        (
            {"finish_seconds": 30, "cold_start_seconds": 40},
            "finish_seconds 30 cannot be met: a worker takes 40 s to start",
        ),
    ],
    ids=str,
)
def test_targets_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        pool_checks.changed(PoolSettings(), {"policy": "slo", "policy_options": options})
    assert words in str(refused.value)


def test_an_old_item_of_a_tenant_at_its_limit_keeps_nobody_from_being_launched() -> None:
    """Ten may be started, and one is idle: who waits for an hour is not refused, but held."""
    before = seen(50, idle=1, held=40, oldest_ready_seconds=3600.0)
    settings = pool_settings("slo", 0, 20, wait_seconds=60, cold_start_seconds=40)
    assert 0 < policies.decide(before, settings).launch <= 9
    assert policies.decide(before.replace(held=0), settings).launch == 0


# -- how long jobs take -------------------------------------------------------------------------


def test_a_batch_of_equal_jobs_does_not_replace_what_was_learned_about_others() -> None:
    batch = Stats(seconds=600.0, starts=3000, finished=3000, run_mean=1.0)
    before = seen(stats=batch)
    memory = Memory(runs=RunTimes(jobs=200.0, total=4000.0, squares=160_000.0, at=NOW - 600.0))
    service = estimates.service(before, memory, guess_seconds=30.0)
    assert service.mean == pytest.approx(18.3, abs=0.1)
    memory = Memory(runs=estimates.noted_service(before, memory))
    service = estimates.service(seen(stats=Stats(seconds=600.0)), memory, guess_seconds=30.0)
    assert service.mean == pytest.approx(18.3, abs=0.1)


def test_jobs_that_take_longer_from_now_on_are_noticed() -> None:
    longer = Stats(seconds=600.0, starts=300, finished=300, run_mean=40.0)
    memory = Memory(runs=RunTimes(jobs=200.0, total=1600.0, squares=12_800.0, at=NOW))
    for window in range(1, 13):  # two hours
        now = seen(stats=longer, now=NOW + 600.0 * window)
        memory = Memory(runs=estimates.noted_service(now, memory))
    assert estimates.service(seen(stats=longer), memory, guess_seconds=30.0).mean > 30.0
