"""How much caution late starts teach, and what is said of a target that is missed."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from fleets_seen import seen

from sprat.core.histogram import bin_of
from sprat.core.model import StatsBucket
from sprat.scaling.slo import learned_margin
from sprat.scaling.slo.memory import LearnedMargin, Memory

DAY = 86400.0
MIDNIGHT = 20_000 * DAY


def waited(at: float, *waits: tuple[int, int]) -> StatsBucket:
    return StatsBucket(at=at, seconds=10.0, starts=sum(n for _, n in waits), waits=waits)


IN_TIME, LATE = 40, 70  # bins of 1 s and of 3 minutes
RULE = learned_margin.KEPT


def learned(
    margin: float = 0.0, *, late: float = 0.0, starts: float = 0.0, since: float = MIDNIGHT - 600
) -> LearnedMargin:
    """A note that was made a window ago."""
    return LearnedMargin(
        margin=margin, at=MIDNIGHT - 600, usual=100.0, late=late, starts=starts, since=since
    )


def after_a_window(
    note: LearnedMargin | None,
    history: list[StatsBucket],
    rule: learned_margin.Rule = RULE,
    now: float = MIDNIGHT,
) -> LearnedMargin:
    return learned_margin.noted(
        seen(now=now, history=history),
        Memory(margin=note),
        rule,
        wait_seconds=30.0,
        percentile=95.0,
    )


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
    past = [waited(MIDNIGHT - 300, (IN_TIME, 100 - late), (LATE, late))]
    margin = after_a_window(learned(0.5), past).margin
    assert math.copysign(1.0, margin - 0.5) == sign
    assert RULE.bounds[0] <= margin <= RULE.bounds[1]


@pytest.mark.parametrize("rule", [learned_margin.LAUNCHED, learned_margin.JUST_LAUNCHED])
def test_one_late_spell_is_remembered_until_as_many_were_in_time(rule: learned_margin.Rule) -> None:
    """Where launches are in time nothing is given away below none, and a spell counts for long."""
    value, windows = 0.0, 0
    for late in (60, *(0,) * 100):
        past = [waited(MIDNIGHT - 300, (IN_TIME, 100 - late), (LATE, late))]
        value = after_a_window(learned(value), past, rule).margin
        windows += value > 0.0
    assert value == 0.0
    assert windows == pytest.approx(60 / (rule.aim * 5), rel=0.25)  # then it is the share aimed at


def aim_after(late: float, rule: learned_margin.Rule, starts: float = 10_000.0) -> float:
    """What is aimed at after so many of those starts were late."""
    note = LearnedMargin(at=MIDNIGHT, usual=100.0, late=late, starts=starts, since=MIDNIGHT - DAY)
    return learned_margin.aimed(seen(now=MIDNIGHT), Memory(margin=note), rule, 95.0).aim


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
        note = learned(late=41.0, starts=1000.0, since=MIDNIGHT - since)
        steps.append(after_a_window(note, [waited(MIDNIGHT - 300, (IN_TIME, 99))]).margin)
    assert steps == sorted(steps)
    assert steps[0] == pytest.approx(-RULE.step, rel=0.05)
    assert steps[3] == pytest.approx(learned_margin.LEAST_PACE * steps[0])


def test_every_start_is_counted_once_whenever_passes_come() -> None:
    """Passes come at any moment, buckets are of ten seconds: what is still being added to is left
    to the next time."""
    buckets = [waited(MIDNIGHT + 10 * n, (LATE, 1), (IN_TIME, 2)) for n in range(1000)]
    note: LearnedMargin | None = None
    now = MIDNIGHT
    while now < MIDNIGHT + 10_700:
        note = after_a_window(note, [one for one in buckets if one.at <= now], now=now)
        now += 7.3
    assert note
    assert (note.late, note.starts) == (1000, 3000)


def test_where_launches_are_in_time_what_was_late_is_answered_and_steps_stay_as_they_are() -> None:
    rule = learned_margin.LAUNCHED
    assert aim_after(5000.0, rule) < rule.aim < aim_after(10.0, rule)
    memory = Memory(margin=learned(late=30.0, starts=1000.0, since=MIDNIGHT - 30 * DAY))
    assert learned_margin.aimed(seen(now=MIDNIGHT), memory, rule, 95.0).step == rule.step


def test_what_is_said_of_a_target_is_said_of_days() -> None:
    """A late hour is part of the share for days, and of no account after two weeks."""
    shares = []
    note = learned(late=60.0, starts=600.0, since=MIDNIGHT - 3600).replace(at=MIDNIGHT)
    for n in range(1, 14 * 144 + 1):
        now = MIDNIGHT + 600 * n
        note = after_a_window(note, [waited(now - 300, (IN_TIME, 5))], now=now)
        shares.append(learned_margin.missed(seen(now=now), Memory(margin=note), 95.0))
    assert shares[10] == pytest.approx(0.092, abs=0.01)
    assert shares[70] is not None
    assert shares[-1] is None


def test_few_starts_move_the_margin_less_than_many() -> None:
    steps = [
        after_a_window(learned(), [waited(MIDNIGHT - 300, (IN_TIME, n))]).margin for n in (2, 100)
    ]
    assert steps[1] < steps[0] < 0.0
