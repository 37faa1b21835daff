"""The predictive policy: what is foretold from a pool's history, and what is made of it."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from fleets_seen import pool_settings, seen
from hypothesis import given
from hypothesis import strategies as st

from sprat.core.model import PoolSettings, StatsBucket
from sprat.scaling import policies
from sprat.scaling.predictive import policy
from sprat.scaling.predictive.forecast import forecast, rises, trend
from sprat.scaling.slo.memory import Memory, read, write
from sprat.simulation.policy import simulate
from sprat.simulation.replay import ReplayResult
from sprat.simulation.trace import Trace

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
    return pool_settings("predictive", 0, 100, **TIGHT)


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
    memory = dict(decided(MIDNIGHT, history=past, busy=60).memory)
    memory["margin"] = {"margin": 1.0, "at": MIDNIGHT, "since": MIDNIGHT}
    del memory["arrivals"]  # how many came meanwhile is not known
    flat = {name: note for name, note in memory.items() if name != "forecast"}
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
    note = Memory(forecast=policy.noted(full, Memory()))
    assert len(str(write(note))) < 300
    assert read(write(note)) == note


def test_slo_does_not_look_ahead() -> None:
    now = MIDNIGHT + 9 * 3600 - 300
    past = history(now // 900 * 900, 3 * DAY, at_nine)
    slo = pool_settings("slo", 0, 100, **TIGHT)
    memory = policies.decide(seen(now=now, history=past), slo).memory
    assert "forecast" not in memory
    assert policies.decide(seen(now=MIDNIGHT + 9 * 3600 - 35, memory=memory), slo).launch == 0


@pytest.mark.parametrize("wait", [30, 40, 120])
def test_without_a_history_it_decides_as_slo_does(wait: int) -> None:
    options = {"wait_seconds": wait, "cold_start_seconds": 40}
    before = seen(7, busy=3, idle=1)
    slo = policies.decide(before, pool_settings("slo", 0, 100, **options))
    ahead = policies.decide(before, pool_settings("predictive", 0, 100, **options))
    assert ahead == slo.replace(policy="predictive")


def replayed(policy: str) -> ReplayResult:
    """Twelve hours, each with a quarter of an hour of one job of 10 s per second."""
    times = [float(second) for second in range(12 * 3600) if second % 3600 < 900]
    trace = Trace(
        name="hourly", arrivals=array("d", times), services=array("d", [10.0] * len(times))
    )
    options = {"wait_seconds": 30, "cold_start_seconds": 60}
    return simulate(
        trace,
        pool_settings(policy, 0, 100, **options),
        cold_start_seconds=60.0,
        wait_target=30.0,
        on_push=True,
    )


def test_a_burst_at_each_full_hour_is_met_in_time_and_for_less() -> None:
    slo, predictive = replayed("slo"), replayed("predictive")
    assert not slo.is_met
    assert predictive.is_met
    assert predictive.cost < 0.8 * slo.cost
