"""How much of the load that there is will still be there, and what is made of it."""

from __future__ import annotations

import math
import random
import statistics
from array import array
from typing import Any

import pytest
from fleets_seen import NOW, pool_settings, seen
from hypothesis import given
from hypothesis import strategies as st

from sprat.core.histogram import bin_of
from sprat.core.model import StatsBucket
from sprat.scaling import policies
from sprat.scaling.slo import estimates, learned_margin, persistence, queueing
from sprat.scaling.slo.estimates import Loads
from sprat.scaling.slo.memory import LearnedMargin, LoadAverages, Memory, read, write
from sprat.scaling.slo.variants import MEMORIES
from sprat.simulation.fleet import Terms
from sprat.simulation.policy import PolicySizer
from sprat.simulation.replay import ReplayResult, replay
from sprat.simulation.trace import Trace

COLD_START, WAIT = 60.0, 30.0
TARGET = pool_settings("slo", 0, 1000, wait_seconds=WAIT, cold_start_seconds=COLD_START)


def ran(*jobs: tuple[float, int], at: float = NOW - 600) -> StatsBucket:
    """So many jobs of so many seconds ended."""
    return StatsBucket(at=at, seconds=10.0, runs=tuple((bin_of(one), n) for one, n in jobs))


# -- the share ----------------------------------------------------------------------------------


def test_it_is_the_work_that_jobs_do_after_their_first_cold_start() -> None:
    assert persistence.measured([ran((5.0, 100), (50.0, 10))], COLD_START) == 0.0
    assert persistence.measured([ran((600.0, 1))], COLD_START) == pytest.approx(0.9, abs=0.02)
    # Most jobs are short, but those at work at any moment are mostly long ones.
    assert persistence.measured([ran((3.0, 200), (1200.0, 1))], COLD_START) > 0.6


def test_before_a_job_has_ended_nothing_is_known() -> None:
    assert persistence.measured([], COLD_START) == 0.0
    assert persistence.measured([ran()], COLD_START) == 0.0


def test_jobs_of_another_kind_are_forgotten() -> None:
    before = [ran((600.0, 500), at=NOW - 10 * n) for n in range(100, 50, -1)]
    since = [ran((2.0, 500), at=NOW - 10 * n) for n in range(50, 0, -1)]
    assert persistence.measured([*before, *since], COLD_START) == 0.0
    assert persistence.measured(before, COLD_START) > 0.8


@given(
    st.lists(st.tuples(st.floats(0.001, 1e6), st.integers(1, 100)), max_size=20),
    st.floats(1.0, 600.0),
)
def test_it_is_a_share_and_the_longer_a_start_the_less_lasts(
    jobs: list[tuple[float, int]], cold_start: float
) -> None:
    history = [ran(*jobs)]
    found = persistence.measured(history, cold_start)
    assert 0.0 <= found <= 1.0
    assert persistence.measured(history, 2.0 * cold_start) <= found


def test_it_is_measured_once_in_a_window() -> None:
    history = [ran((600.0, 50))]
    memory: Any = policies.decide(seen(2, busy=3, history=history), TARGET).memory
    assert memory["persistence"] > 0.8
    soon = seen(2, busy=3, now=NOW + 30, memory=memory)
    assert policies.decide(soon, TARGET).memory["persistence"] == memory["persistence"]
    later = seen(2, busy=3, now=NOW + 700, memory=memory, history=[ran((5.0, 50), at=NOW + 100)])
    assert "persistence" not in policies.decide(later, TARGET).memory


def test_it_is_of_no_account_where_launches_are_in_time() -> None:
    relaxed = pool_settings("slo", 0, 100, wait_seconds=120, cold_start_seconds=COLD_START)
    before = seen(5, busy=2, history=[ran((600.0, 50))])
    assert "persistence" not in policies.decide(before, relaxed).memory
    assert policies.decide(before, relaxed).inputs["lasting"] == 0.0


# -- the load that is expected --------------------------------------------------------------------


def test_long_jobs_are_expected_to_stay_and_short_ones_to_be_as_usual() -> None:
    for now in (4.0, 30.0):
        short, half, long = (
            Loads(fast=now, slow=(20.0,) * 4, lasting=share).expected(1, 2.0)
            for share in (0.0, 0.5, 1.0)
        )
        assert abs(long - now) < abs(half - now) < abs(short - now)
        assert long == now


def test_who_is_calm_goes_by_what_is_remembered() -> None:
    loads = Loads(fast=4.0, slow=(20.0,) * 4, lasting=0.9)
    assert loads.expected(1, None) == 20.0
    assert loads.deviation(1, 20.0, None) == math.sqrt(20.0)


def deviation(now: float, usual: float, share: float) -> float:
    loads = Loads(fast=now, slow=(usual,) * 4, lasting=share)
    return loads.deviation(1, loads.expected(1, 2.0), 2.0)


def test_what_lasts_is_no_chance() -> None:
    """Of a steady load the share that comes and goes varies; with all of it known, nothing does."""
    assert deviation(25.0, 25.0, 0.0) == 5.0
    assert deviation(25.0, 25.0, 0.8) == pytest.approx(3.0)
    assert deviation(25.0, 25.0, 1.0) == 0.0
    # Nobody is there, but as many will come as usual.
    assert deviation(0.0, 25.0, 0.8) == pytest.approx(math.sqrt(0.2 * 25.0))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_it_is_the_deviation_of_a_load_a_cold_start_ahead(share: float) -> None:
    """30 are there and 20 are usual. Of the first each stays with that chance, and as many come at
    random as make up for those who leave when the load is as usual."""
    chance = random.Random(5)

    def came(mean: float) -> int:
        number, at = 0, chance.expovariate(1.0)
        while at < mean:
            number, at = number + 1, at + chance.expovariate(1.0)
        return number

    ahead = [
        sum(chance.random() < share for _ in range(30)) + came(20.0 * (1.0 - share))
        for _ in range(4000)
    ]
    loads = Loads(fast=30.0, slow=(20.0,) * 4, lasting=share)
    expected = share * 30.0 + (1.0 - share) * 20.0
    assert statistics.fmean(ahead) == pytest.approx(expected, rel=0.02)
    assert statistics.stdev(ahead) == pytest.approx(loads.deviation(1, expected, 2.0), rel=0.05)


def test_a_deviation_makes_the_margin() -> None:
    sizes = [queueing.square_root_staffed(25.0, 2.0, n) for n in (None, 5.0, 3.0, 0.0)]
    assert sizes == [35, 35, 31, 25]


def test_fewer_are_kept_after_long_jobs_than_after_short_ones() -> None:
    """The load was 30 lately, and is 10: nobody knows where the short jobs are that were usual, but
    of long ones 20 have ended."""
    note = Memory(
        loads=LoadAverages(fast=10.0, slow=(30.0,) * 4, at=NOW),
        margin=LearnedMargin(margin=1.0, at=NOW, since=NOW - 86400),
    )
    short, long = (
        policies.decide(seen(busy=10, idle=25, memory=write(each)), TARGET)
        for each in (note, note.replace(persistence=0.9))
    )
    assert 10 < long.desired < 16 < 28 < short.desired
    assert long.inputs["lasting"] == 0.9


def test_what_was_not_seen_is_not_remembered() -> None:
    """Twenty items waited for the first worker. Ten minutes after, the longest memory has it as the
    others have, not as if it had always been so."""
    memory: Any = {}
    for n in range(120):
        waiting = 20 if n < 6 else 0
        before = seen(waiting, busy=2, now=NOW + 5.0 * n, memory=memory)
        memory = policies.decide(before, TARGET).memory
    assert learned_margin.learned_for(seen(now=NOW + 600), read(memory)) < MEMORIES[-1] * COLD_START
    assert memory["loads"]["slow"][-1] < 8.0


def test_an_item_that_a_worker_will_take_in_time_is_little_load() -> None:
    """Jobs of 3 s and a wait of 30 s: one worker takes ten of those that wait."""
    before = seen(20, busy=10)
    loads = {
        mean: estimates.loads(
            before,
            Memory(),
            service_mean=mean,
            wait_seconds=WAIT,
            cold_start_seconds=COLD_START,
            offered=None,
        ).fast
        for mean in (3.0, 15.0, 60.0)
    }
    assert loads == {3.0: pytest.approx(12.0), 15.0: pytest.approx(20.0), 60.0: pytest.approx(30.0)}


# -- what it comes to -----------------------------------------------------------------------------


def replayed(seed: int) -> ReplayResult:
    """A day of jobs of ten minutes, whose load goes between 12 and 36."""
    chance = random.Random(seed)
    arrivals, services, at = array("d"), array("d"), 0.0
    while at < 86400.0:
        rate = 0.06 if at % 7200.0 < 3600.0 else 0.02
        at += chance.expovariate(rate)
        arrivals.append(at)
        services.append(chance.expovariate(1.0 / 600.0))
    trace = Trace(name="made", arrivals=arrivals, services=services)
    terms = Terms(cold_start_seconds=COLD_START)
    return replay(trace, PolicySizer(TARGET), terms, wait_target=WAIT, policy="slo")


@pytest.mark.parametrize("seed", [1, 2])
def test_with_long_jobs_it_is_cheaper_and_in_time(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    ours = replayed(seed)
    monkeypatch.setattr(persistence, "measured", lambda history, cold_start: 0.0)
    without = replayed(seed)
    assert ours.is_met
    assert ours.cost < 0.97 * without.cost
