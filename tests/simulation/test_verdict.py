"""How the comparison is judged: the envelope, the best single setting, the targets."""

from __future__ import annotations

import pytest

from bench.scaling import grid, page, scenarios, verdict
from sprat.simulation import contenders
from sprat.simulation.replay import ReplayResult, summary

A, B, *REST = [one.label for one in verdict.family("KEDA")]


def outcome(cost: float, p95: float) -> ReplayResult:
    return summary(
        [p95], wait_target=None, policy="p", trace="t", paid_seconds=cost, useful_seconds=1.0
    )


def cell(
    ours: tuple[float, float],
    a: tuple[float, float],
    b: tuple[float, float],
    *,
    wait: float = 120.0,
) -> verdict.Cell:
    dear = {one.label: outcome(9.0, 999.0) for one in grid.SETTINGS}
    return verdict.Cell(
        scenario="t",
        cold_start=60.0,
        wait_target=wait,
        ours=outcome(*ours),
        oracle=outcome(1.0, wait),
        others={**dear, A: outcome(*a), B: outcome(*b)},
    )


def test_the_envelope_is_the_cheapest_that_meets_the_target() -> None:
    seen = cell((1.3, 100), (1.2, 110), (1.1, 130))
    assert seen.envelope is not None
    assert seen.envelope[0] == A
    assert seen.against_envelope == pytest.approx(1.3 / 1.2)


def test_who_pays_ten_times_what_an_oracle_does_is_not_in_the_envelope() -> None:
    wasteful = cell((1.3, 31), (12.0, 0), (1.1, 40), wait=30.0)
    assert wasteful.envelope is None
    assert wasteful.is_beyond
    assert not cell((1.3, 29), (12.0, 0), (1.1, 40), wait=30.0).is_beyond
    assert not cell((1.3, 31), (9.0, 0), (1.1, 40), wait=30.0).is_beyond


def test_who_misses_the_target_is_not_compared_by_cost() -> None:
    assert cell((1.0, 121), (1.2, 110), (1.1, 130)).against_envelope is None
    assert cell((1.0, 110), (1.2, 121), (1.1, 130)).against_envelope is None


def test_the_best_single_setting_meets_the_target_as_often_as_ours() -> None:
    cells = [cell((1.0, 60), (1.5, 60), (1.1, 60)), cell((1.0, 60), (1.5, 60), (1.1, 130))]
    best = verdict.best_single(cells, verdict.family("KEDA"))
    assert (best.label, best.met) == (A, 2)
    assert best.ratio == pytest.approx(1 / 1.5)
    missing = [cells[0], cell((1.0, 121), (1.5, 60), (1.1, 130))]
    assert verdict.best_single(missing, verdict.family("KEDA")).label == B  # once is enough


@pytest.mark.parametrize(
    ("wait", "regime"), [(300, "W >= 2C"), (120, "W >= 2C"), (60, "C <= W < 2C"), (59, "W < C")]
)
def test_regimes_go_by_the_cold_start(wait: float, regime: str) -> None:
    assert cell((1, 1), (1, 1), (1, 1), wait=wait).regime == regime


def test_targets_are_met_or_missed() -> None:
    good = verdict.targets([cell((1.0, 60), (1.3, 60), (9.0, 60))] * 3)
    assert [t.is_met for t in good[:3]] == [True, True, True]
    bad = verdict.targets([cell((1.5, 160), (1.3, 60), (9.0, 60))] * 3)
    assert not any(t.is_met for t in bad)


def test_below_the_cold_start_a_target_is_met_or_said_to_be_out_of_reach() -> None:
    met = cell((1.0, 20), (1.3, 20), (9.0, 20), wait=30.0)
    missed = cell((1.0, 40), (1.3, 20), (9.0, 20), wait=30.0)
    said = missed.replace(ours=missed.ours.replace(verdict="cannot be met at this cold start"))
    assert [one.is_said for one in (met, missed, said)] == [False, False, True]
    assert verdict.targets([met, said])[-1].is_met
    last = verdict.targets([met, missed, said])[-1]
    assert (last.reached, last.is_met) == ("1 met, 1 said so, of 3", False)


def test_what_an_oracle_pays_stands_beside_our_cost() -> None:
    cells = [cell((1.2, 60), (1.5, 60), (1.6, 60))]
    envelope, keda = verdict.targets(cells)[1:3]
    assert envelope.reached == "-20.0 % (over 1; oracle -33.3 %)"
    assert keda.reached == "-20.0 % (oracle -33.3 %)"


def test_what_was_not_run_is_named_on_the_page() -> None:
    seen = [cell((1.0, 60), (1.3, 60), (9.0, 60)).replace(scenario="daily")]
    text = page.render(seen, "the command")
    head = text.split("## Targets")[0]
    assert "(not run: at 40 s all; at 60 s " in head
    assert "swim_fb2010" in head
    assert "daily" not in head
    assert "`the command`" in text


def test_every_setting_of_the_grid_is_valid_and_named_once() -> None:
    assert 100 <= len(grid.SETTINGS) <= 150
    assert len({one.label for one in grid.SETTINGS}) == len(grid.SETTINGS)
    for one in grid.SETTINGS:
        contenders.check(one.policy, one.options)


@pytest.mark.parametrize("name", [*scenarios.IN_SAMPLE, *scenarios.HOLD_OUT])
def test_every_scenario_loads_and_is_the_same_each_time(name: str) -> None:
    trace = scenarios.load(name)
    assert trace.jobs > 1000
    assert list(trace.arrivals) == sorted(trace.arrivals)
    if name in scenarios.SYNTHETIC:
        assert scenarios.SYNTHETIC[name](name) == trace
