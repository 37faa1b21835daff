"""What is foretold from a pool's history, and what is made of it."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprat.core.histogram import bin_of
from sprat.core.model import PoolSettings, StatsBucket
from sprat.scaling import policies
from sprat.scaling.slo import forecast_note, learned_margin
from sprat.scaling.slo.forecast import forecast, rises, trend
from tests.scaling.fleets_seen import pool_settings, seen

DAY = 86400.0
MIDNIGHT = 20_000 * DAY
TIGHT = {"wait_seconds": 30, "cold_start_seconds": 40}


def history(
    until: float, seconds: float, load: Callable[[float], float], width: float = 900.0
) -> list[StatsBucket]:
    """Jobs of 10 seconds that keep so many busy at each moment."""
    made = []
    for n in range(int(seconds / width)):
        at = until - seconds + n * width
        jobs = round(load(at) * width / 10.0)
        if jobs:
            run = 10.0 * jobs
            one = StatsBucket(at=at, seconds=width, arrivals=jobs, finished=jobs, run_seconds=run)
            made.append(one)
    return made


def at_nine(at: float) -> float:
    return 12.0 if 9 <= at % DAY / 3600 < 17 else 2.0


# -- seasons ------------------------------------------------------------------------------------


def test_a_working_day_is_foretold_by_those_before() -> None:
    now = MIDNIGHT + 8.9 * 3600
    (rise,) = rises(history(now // 900 * 900, 3 * DAY, at_nine), now)
    assert (rise.at, rise.period) == (MIDNIGHT + 9 * 3600, DAY)
    assert rise.load == pytest.approx(12.0)
    assert rise.words() == "the day before it rose to 6.0x"


def test_at_other_hours_nothing_is_due() -> None:
    now = MIDNIGHT + 14 * 3600
    assert rises(history(now, 3 * DAY, at_nine), now) == ()


def test_a_free_weekend_is_known_after_two_weeks() -> None:
    """Friday tells nothing about Saturday, the Saturday before does. Day 2 of 1970 was one."""

    def weekly(at: float) -> float:
        return 0.0 if (at // DAY) % 7 in (2, 3) else at_nine(at)

    saturday = MIDNIGHT + (2 - 20_000 % 7) % 7 * DAY + 8.9 * 3600
    past = history(saturday // 900 * 900, 15 * DAY, weekly)
    assert rises(past, saturday) == ()
    monday = saturday + 2 * DAY
    (rise,) = rises(history(monday // 900 * 900, 15 * DAY, weekly), monday)
    assert rise.period == 7 * DAY


def test_an_hourly_burst_is_known_after_a_few() -> None:
    now = MIDNIGHT + 5 * 3600 - 60
    past = history(now // 900 * 900, 5 * 3600, lambda at: 10.0 if at % 3600 < 900 else 0.0)
    (rise,) = rises(past, now)
    assert rise.at == MIDNIGHT + 5 * 3600
    assert rise.words() == "1 h before it rose to 10.0"


def test_noise_is_not_taken_for_a_season() -> None:
    source = random.Random(7)
    found = 0
    for n in range(30):
        now = MIDNIGHT + n * 900
        found += bool(rises(history(now, 4 * DAY, lambda at: source.uniform(5, 15)), now))
    assert found <= 1


# -- trends -------------------------------------------------------------------------------------


def test_a_steady_rise_is_followed() -> None:
    past = history(MIDNIGHT, 7200, lambda at: 20 + (at - MIDNIGHT) / 600, width=10.0)
    assert trend(past, MIDNIGHT) == pytest.approx(1 / 600, rel=0.1)


@pytest.mark.parametrize("slope", [0.0, -1 / 600])
def test_what_does_not_rise_has_no_trend(slope: float) -> None:
    past = history(MIDNIGHT, 7200, lambda at: 8 + slope * (at - MIDNIGHT), width=10.0)
    assert trend(past, MIDNIGHT) == 0.0


def test_one_burst_is_no_trend() -> None:
    past = history(MIDNIGHT, 7200, lambda at: 50.0 if at > MIDNIGHT - 300 else 5.0, width=10.0)
    assert trend(past, MIDNIGHT) == 0.0


def test_without_a_history_nothing_is_expected() -> None:
    assert forecast([], MIDNIGHT) == forecast([StatsBucket(at=5.0, seconds=10.0)], MIDNIGHT)
    assert forecast([], MIDNIGHT).rises == ()
    assert forecast([], MIDNIGHT).slope == 0.0


buckets = st.lists(
    st.builds(
        lambda at, n, run: StatsBucket(
            at=MIDNIGHT - at * 900.0, seconds=900.0, arrivals=n, finished=n, run_seconds=run
        ),
        *(st.integers(0, 300), st.integers(0, 1000), st.floats(0, 1e6)),
    ),
    max_size=60,
)


@given(buckets)
def test_a_forecast_is_a_number_and_not_negative(some: list[StatsBucket]) -> None:
    made = forecast(sorted(some, key=lambda one: one.at), MIDNIGHT)
    values = [made.slope, *(x for rise in made.rises for x in (rise.load, rise.spread))]
    assert all(math.isfinite(value) and value >= 0.0 for value in values)


# -- what is made of it -------------------------------------------------------------------------


def settings() -> PoolSettings:
    return pool_settings("slo", 0, 100, **TIGHT)


def decided(now: float, **about: Any) -> Any:
    return policies.decide(seen(now=now, **about), settings())


def test_workers_are_launched_a_cold_start_before_a_rise_and_the_reason_says_why() -> None:
    now = MIDNIGHT + 9 * 3600 - 300
    memory = decided(now, history=history(now // 900 * 900, 3 * DAY, at_nine)).memory
    nine = MIDNIGHT + 9 * 3600
    assert decided(nine - 60, memory=memory).launch == 0
    made = decided(nine - 35, memory=memory)
    assert made.launch == 10
    assert made.reason.endswith("12.0 is due: the day before it rose to 6.0x")
    assert decided(nine + 60, idle=12, memory=memory).desired < 12


def test_a_rising_load_is_met_ahead() -> None:
    past = history(MIDNIGHT, 7200, lambda at: 60 + (at - MIDNIGHT) / 120, width=10.0)
    learned = {"margin": [1.0, MIDNIGHT, 0.0, 0.0, 0.0]}
    memory = {**decided(MIDNIGHT, history=past, busy=60).memory, **learned}
    del memory["arrivals"]  # how many came meanwhile is not known
    flat = {name: note for name, note in memory.items() if name != "ahead"}
    soon = MIDNIGHT + 240
    assert (
        decided(soon, busy=60, memory=memory).desired > decided(soon, busy=60, memory=flat).desired
    )


def test_the_history_is_asked_for_once_a_window_and_only_where_launches_come_too_late() -> None:
    before = seen()
    assert policies.wants_history(before, settings())
    after = before.replace(memory=policies.decide(before, settings()).memory, now=before.now + 60)
    assert not policies.wants_history(after, settings())
    assert policies.wants_history(after.replace(now=before.now + 700), settings())
    assert not policies.wants_history(before, pool_settings("slo", wait_seconds=120))
    assert not policies.wants_history(before, pool_settings("queue-depth"))


def test_a_note_about_what_is_due_is_small() -> None:
    now = MIDNIGHT + 8.9 * 3600
    full = seen(now=now, history=history(now // 900 * 900, 15 * DAY, at_nine))
    assert len(str(forecast_note.noted(full))) < 300


# -- lateness -----------------------------------------------------------------------------------


def waited(at: float, *waits: tuple[int, int]) -> StatsBucket:
    return StatsBucket(at=at, seconds=10.0, starts=sum(n for _, n in waits), waits=waits)


IN_TIME, LATE = 40, 70  # bins of 1 s and of 3 minutes
RULE = learned_margin.KEPT


@pytest.mark.parametrize("target", [1.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0])
def test_who_waited_as_long_as_the_target_is_in_time(target: float) -> None:
    waits = Counter(map(bin_of, (target - 0.5, target, target + 1e-9, target + 0.01)))
    assert learned_margin.counted([waited(0, *waits.items())], target) == (1, 4)


def test_of_a_bin_around_an_odd_target_a_part_is_late() -> None:
    odd = bin_of(32.0)  # from 30 to 35
    late, starts = learned_margin.counted([waited(0, (IN_TIME, 90), (odd, 10), (LATE, 5))], 32.0)
    assert starts == 105
    assert late == pytest.approx(5 + 10 * 0.58, abs=0.1)


@pytest.mark.parametrize(("late", "sign"), [(0, -1), (3, -1), (6, 1), (40, 1)])
def test_the_margin_sinks_while_fewer_are_late_than_may_be(late: int, sign: int) -> None:
    memory = {"margin": [0.5, MIDNIGHT - 600, 100.0]}
    past = [waited(MIDNIGHT - 300, (IN_TIME, 100 - late), (LATE, late))]
    before = seen(now=MIDNIGHT, memory=memory, history=past)
    note = learned_margin.noted(before, RULE, wait_seconds=30.0, percentile=95.0)["margin"]
    assert math.copysign(1.0, note[0] - 0.5) == sign
    assert RULE.bounds[0] <= note[0] <= RULE.bounds[1]


@pytest.mark.parametrize("rule", [learned_margin.LAUNCHED, learned_margin.JUST_LAUNCHED])
def test_one_late_spell_is_remembered_until_as_many_were_in_time(rule: learned_margin.Rule) -> None:
    """Where launches are in time nothing is given away below none, and a spell counts for long."""
    value, windows = 0.0, 0
    for late in (60, *(0,) * 100):
        memory = {"margin": [value, MIDNIGHT - 600, 100.0]}
        past = [waited(MIDNIGHT - 300, (IN_TIME, 100 - late), (LATE, late))]
        before = seen(now=MIDNIGHT, memory=memory, history=past)
        value = learned_margin.noted(before, rule, wait_seconds=30.0, percentile=95.0)["margin"][0]
        windows += value > 0.0
    assert value == 0.0
    assert windows == pytest.approx(60 / (rule.aim * 5), rel=0.25)  # then it is the share aimed at


def aim_after(late: float, rule: learned_margin.Rule, starts: float = 10_000.0) -> float:
    """What is aimed at after so many of those starts were late."""
    memory = {"margin": [0.0, MIDNIGHT, 100.0, late, starts, MIDNIGHT - DAY]}
    return learned_margin.aimed(seen(now=MIDNIGHT, memory=memory), rule, 95.0).aim


def test_what_was_late_before_is_made_up_for() -> None:
    """5 in 100 may be late, and a little less is aimed at."""
    as_aimed = 500.0 * RULE.aim
    assert aim_after(as_aimed, RULE) == pytest.approx(RULE.aim)
    assert aim_after(as_aimed + 50, RULE) < RULE.aim < aim_after(as_aimed - 50, RULE)
    assert aim_after(10_000.0, RULE) == learned_margin.AIMS[0]
    assert aim_after(0.0, RULE) == learned_margin.AIMS[1]


def test_a_first_bad_hour_changes_the_aim_little() -> None:
    assert aim_after(36.0, RULE, 600.0) > 0.65 * RULE.aim
    assert aim_after(360.0, RULE, 6000.0) < 0.4 * RULE.aim


def test_the_longer_it_has_been_learned_the_smaller_the_steps() -> None:
    steps = []
    for since in (0.0, 3600.0, DAY, 30 * DAY):
        memory = {"margin": [0.0, MIDNIGHT - 600, 100.0, 41.0, 1000.0, MIDNIGHT - since]}
        before = seen(now=MIDNIGHT, memory=memory, history=[waited(MIDNIGHT - 300, (IN_TIME, 99))])
        steps.append(
            learned_margin.noted(before, RULE, wait_seconds=30.0, percentile=95.0)["margin"][0]
        )
    assert steps == sorted(steps)
    assert steps[0] == pytest.approx(-RULE.step, rel=0.05)
    assert steps[3] == pytest.approx(learned_margin.LEAST_PACE * steps[0])


def test_every_start_is_counted_once_whenever_passes_come() -> None:
    """Passes come at any moment, buckets are of ten seconds: what is still being added to is left
    to the next time."""
    buckets = [waited(MIDNIGHT + 10 * n, (LATE, 1), (IN_TIME, 2)) for n in range(1000)]
    memory: Any = {}
    now = MIDNIGHT
    while now < MIDNIGHT + 10_700:
        begun = [one for one in buckets if one.at <= now]
        before = seen(now=now, memory=memory, history=begun)
        memory = learned_margin.noted(before, RULE, wait_seconds=30.0, percentile=95.0)
        now += 7.3
    _, _, _, late, starts, _ = memory["margin"]
    assert (late, starts) == (1000, 3000)


def test_where_launches_are_in_time_what_was_late_is_answered_and_steps_stay_as_they_are() -> None:
    rule = learned_margin.LAUNCHED
    assert aim_after(5000.0, rule) < rule.aim < aim_after(10.0, rule)
    memory = {"margin": [0.0, MIDNIGHT, 100.0, 30.0, 1000.0, MIDNIGHT - 30 * DAY]}
    assert learned_margin.aimed(seen(now=MIDNIGHT, memory=memory), rule, 95.0).step == rule.step


def test_what_is_said_of_a_target_is_said_of_days() -> None:
    """A late hour is part of the share for days, and of no account after two weeks."""
    shares = []
    memory: Any = {"margin": [0.0, MIDNIGHT, 100.0, 60.0, 600.0, MIDNIGHT - 3600]}
    for n in range(1, 14 * 144 + 1):
        now = MIDNIGHT + 600 * n
        before = seen(now=now, memory=memory, history=[waited(now - 300, (IN_TIME, 5))])
        memory = learned_margin.noted(before, RULE, wait_seconds=30.0, percentile=95.0)
        shares.append(learned_margin.missed(before.replace(memory=memory), 95.0))
    assert shares[10] == pytest.approx(0.092, abs=0.01)
    assert shares[70] is not None
    assert shares[-1] is None


def test_few_starts_move_the_margin_less_than_many() -> None:
    steps = []
    for n in (2, 100):
        memory = {"margin": [0.0, MIDNIGHT - 600, 100.0]}
        before = seen(now=MIDNIGHT, memory=memory, history=[waited(MIDNIGHT - 300, (IN_TIME, n))])
        steps.append(
            learned_margin.noted(before, RULE, wait_seconds=30.0, percentile=95.0)["margin"][0]
        )
    assert steps[1] < steps[0] < 0.0
