"""Simulated fleets: what becomes of them, and which way is followed."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import pytest
from fleets_seen import NOW, pool_settings, seen
from hypothesis import given
from hypothesis import strategies as st

from sprat.core.model import Counts
from sprat.scaling import policies
from sprat.scaling.slo import learned_margin, shadow_fleets, variants
from sprat.scaling.slo.memory import (
    ArrivalCounts,
    LearnedMargin,
    Memory,
    ShadowFleet,
    ShadowFleets,
    ShadowLaunch,
    read,
    write,
)
from sprat.scaling.slo.queueing import Service
from sprat.scaling.slo.shadow_fleets import Since
from sprat.scaling.slo.variants import USUAL, WAYS, Variant
from sprat.simulation.fleet import Terms
from sprat.simulation.policy import PolicySizer
from sprat.simulation.replay import replay
from sprat.simulation.trace import Trace

COLD_START, WAIT = 40.0, 30.0
TEN_SECONDS = Service(mean=10.0, jobs=100)
TARGET = pool_settings("slo", 0, 1000, wait_seconds=WAIT, cold_start_seconds=COLD_START)


def since(came: int = 0, ends: float = 0.0, seconds: float = 5.0) -> Since:
    return Since(now=NOW, seconds=seconds, came=came, ends=ends)


def launch(seconds: float, workers: int) -> ShadowLaunch:
    """So many become active in so many seconds."""
    return ShadowLaunch(at=NOW + seconds, workers=workers)


def advanced(fleet: ShadowFleet, **happened: Any) -> ShadowFleet:
    return shadow_fleets.advanced(fleet, since(**happened), TEN_SECONDS, WAIT)


# -- one fleet ----------------------------------------------------------------------------------


def test_it_is_paid_and_ends_as_large_a_share_of_its_jobs_as_really_end() -> None:
    after = advanced(ShadowFleet(active=4, items=3.0, starting=[launch(9, 2)]), came=1, ends=0.5)
    assert after.items == 2.0
    assert after.paid == 6 * 5.0
    assert (after.active, after.size) == (4, 6)


def test_who_was_launched_comes_after_the_cold_start() -> None:
    launched = shadow_fleets.resized(ShadowFleet(), 3, NOW - COLD_START, COLD_START)
    assert (launched.active, launched.size) == (0, 3)
    assert advanced(launched).active == 3


def test_late_are_those_whom_the_fleet_does_not_reach_in_time() -> None:
    """4 workers end 12 jobs of 10 s within 30 s: of the 26 that wait, 14 are late."""
    assert advanced(ShadowFleet(active=4), came=30).late == 14.0
    assert advanced(ShadowFleet(active=4), came=16).late == 0.0
    assert advanced(ShadowFleet(active=4, starting=[launch(20, 20)]), came=30).late == 0.0


def test_launches_of_about_the_same_moment_are_one() -> None:
    """A cold start of minutes and a pass a second: the note stays small."""
    fleet = ShadowFleet()
    for n in range(300):
        fleet = shadow_fleets.resized(fleet, n, NOW + n, 300.0)
    assert fleet.size == 299
    assert len(fleet.starting) <= shadow_fleets.LAUNCHES + 1


def test_those_leave_first_who_have_not_come_and_the_busy_never() -> None:
    fleet = ShadowFleet(active=5, items=3.2, starting=[launch(10, 2), launch(30, 2)])
    assert shadow_fleets.resized(fleet, 8, NOW, COLD_START).starting == (
        launch(10, 2),
        launch(30, 1),
    )
    assert shadow_fleets.resized(fleet, 6, NOW, COLD_START).starting == (launch(10, 1),)
    assert shadow_fleets.resized(fleet, 5, NOW, COLD_START).size == 5
    assert shadow_fleets.resized(fleet, 0, NOW, COLD_START).size == 4


@given(st.integers(0, 50), st.integers(0, 50), st.floats(0, 60), st.integers(0, 60))
def test_a_fleet_has_the_size_that_is_wanted_but_for_its_busy(
    active: int, starting: int, items: float, wanted: int
) -> None:
    fleet = ShadowFleet(
        active=active, items=items, starting=[launch(9, starting)] if starting else []
    )
    assert shadow_fleets.resized(fleet, wanted, NOW, COLD_START).size == max(wanted, fleet.busy)


def test_a_window_teaches_it_and_is_added_to_what_was_before() -> None:
    window = ShadowFleet(
        margin=0.5, late=10.0, came=100.0, paid=50.0, usual=100.0, paid_before=100.0
    )
    late = shadow_fleets.learned(window, learned_margin.KEPT, 95.0)
    in_time = shadow_fleets.learned(window.replace(late=0.0), learned_margin.KEPT, 95.0)
    assert in_time.margin < 0.5 < late.margin
    assert late.paid_before == pytest.approx(50.0 + shadow_fleets.FADE * 100.0)
    assert (late.late, late.came, late.paid) == (0.0, 0.0, 0.0)


# -- which one is followed ------------------------------------------------------------------------


def after_a_window(
    fleets: list[ShadowFleet], before: int = USUAL, known_for: float = 10800.0
) -> int:
    """The way that is followed after a window in which nothing happened."""
    memory = Memory(
        shadows=ShadowFleets(way=before, at=NOW, fleets=fleets),
        margin=LearnedMargin(at=NOW - 600, since=NOW - known_for),
        arrivals=ArrivalCounts(quick=0.0, steady=0.0, total=0, live=0, at=NOW),
    )
    after = shadow_fleets.noted(
        seen().replace(counts=Counts()),
        memory,
        TEN_SECONDS,
        cold_start=COLD_START,
        wait_seconds=WAIT,
        percentile=95.0,
        size=lambda fleet, way: fleet.size,
    )
    return after.way


def fleets(costs: dict[int, float], late: dict[int, float] | None = None) -> list[ShadowFleet]:
    """One for each way, the costs of some by their place; others come to 100."""
    return [
        ShadowFleet(
            margin=float(n),
            paid_before=costs.get(n, 100.0),
            late_before=(late or {}).get(n, 0.0),
            came_before=1000.0,
        )
        for n in range(len(WAYS))
    ]


def test_the_cheapest_is_followed_if_it_is_clearly_cheaper() -> None:
    assert after_a_window(fleets({4: 93.0, 6: 110.0})) == USUAL
    assert after_a_window(fleets({4: 85.0, 6: 110.0})) == 4


@pytest.mark.parametrize(("other", "place"), [(95.0, 6), (80.0, 4)])
def test_one_that_is_followed_stays_while_it_is_a_little_cheaper(other: float, place: int) -> None:
    assert after_a_window(fleets({0: 98.0, 4: other, 6: 95.0}), before=6) == place
    assert after_a_window(fleets({4: 99.0, 6: 97.0}), before=6) == USUAL


def test_no_other_is_followed_before_enough_is_known() -> None:
    assert after_a_window(fleets({3: 50.0}), known_for=1200.0) == USUAL
    assert after_a_window(fleets({3: 50.0}), known_for=3600.0) == 3


def test_a_calm_one_is_not_followed_before_a_burst_may_have_come() -> None:
    calm = next(n for n, way in enumerate(WAYS) if way.is_calm)
    other = next(n for n, way in enumerate(WAYS) if not way.is_calm)
    costs = fleets({calm: 50.0, other: 80.0})
    assert after_a_window(costs, known_for=3600.0) == other
    assert after_a_window(costs, known_for=7200.0) == calm


def test_who_is_late_is_not_cheap() -> None:
    chosen = after_a_window(fleets({0: 50.0, 4: 80.0}, late={0: 200.0}))
    assert chosen == 4


def test_the_margin_moves_by_what_the_other_fleet_learned() -> None:
    shadows = ShadowFleets(way=2, at=NOW, fleets=fleets({}))
    assert shadow_fleets.change(Memory(shadows=shadows), shadows.replace(way=6)) == 4.0
    assert shadow_fleets.change(Memory(shadows=shadows), shadows) == 0.0


def test_a_note_of_other_ways_is_begun_again() -> None:
    """Left by a version that knew fewer."""
    shadows = ShadowFleets(way=3, at=NOW - 5, fleets=[ShadowFleet(margin=1.0)] * 4)
    memory = write(Memory(shadows=shadows))
    assert shadow_fleets.followed(read(memory)) == WAYS[USUAL]
    after = read(policies.decide(seen(memory=memory), TARGET).memory).shadows
    assert after == ShadowFleets(way=USUAL, at=NOW, fleets=(ShadowFleet(),) * len(WAYS))


def replayed(arrivals: Iterable[float], service: float) -> tuple[Variant, Any]:
    """The way that is followed when a trace is over, and what it came to."""
    times = sorted(arrivals)
    trace = Trace(
        name="made", arrivals=array("d", times), services=array("d", [service] * len(times))
    )
    sizer = PolicySizer(TARGET)
    outcome = replay(
        trace, sizer, Terms(cold_start_seconds=COLD_START), wait_target=WAIT, policy="slo"
    )
    return shadow_fleets.followed(read(sizer._memory)), outcome


def test_batches_that_come_again_are_remembered_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """30 jobs every two and a half minutes: who forgets them launches for each batch, too late."""
    batches = [150.0 * n + 0.1 * k for n in range(300) for k in range(30)]
    way, outcome = replayed(batches, 10.0)
    assert way.memory > WAYS[USUAL].memory
    assert way.is_calm
    monkeypatch.setattr(variants, "WAYS", (WAYS[USUAL],))
    monkeypatch.setattr(variants, "USUAL", 0)
    _, forgetful = replayed(batches, 10.0)
    assert outcome.late_share < forgetful.late_share
    assert outcome.cost < 0.6 * forgetful.cost


def test_a_spell_is_forgotten_before_the_next() -> None:
    """Ten minutes of load that come back after an hour: who remembers them pays for the pause."""
    way, _ = replayed((4000.0 * n + 2.0 * k for n in range(12) for k in range(300)), 10.0)
    assert way.memory <= WAYS[USUAL].memory


def test_the_notes_stay_small() -> None:
    memory: Any = {}
    for n in range(400):
        busy = min(30, n)
        before = seen(n % 50, busy=busy, now=NOW + 2.0 * n, memory=memory)
        memory = policies.decide(before, TARGET).memory
    assert len(str(memory)) < 6000


def test_no_more_workers_are_simulated_than_there_may_be() -> None:
    """A million items wait, and two hundred workers are allowed: thinking of more takes time."""
    settings = TARGET.replace(max_workers=200)
    memory: Any = {}
    for n in range(5):
        before = seen(1_000_000, busy=200, now=NOW + 60.0 * n, memory=memory)
        memory = policies.decide(before, settings).memory
    shadows = read(memory).shadows
    assert shadows
    assert max(fleet.size for fleet in shadows.fleets) == 200


def test_no_fleet_is_simulated_where_launches_are_in_time() -> None:
    relaxed = pool_settings("slo", 0, 100, wait_seconds=120, cold_start_seconds=COLD_START)
    assert "shadows" not in policies.decide(seen(5, busy=2), relaxed).memory
    assert "shadows" in policies.decide(seen(5, busy=2), TARGET).memory


def test_a_late_start_is_worth_as_many_steps_to_them_as_to_the_fleet() -> None:
    aim = 5.0 * learned_margin.KEPT.aim
    assert learned_margin.steps(learned_margin.KEPT, aim, 100.0, 100.0, 95.0) == pytest.approx(0.0)
