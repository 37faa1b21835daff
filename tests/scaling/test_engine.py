"""The step-wise engine: behaviours 4.1 to 4.4 as tables, the presets, and what always holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprat.core.errors import InvalidInput
from sprat.scaling.engine import EngineConfig, EngineState, ScaleDirection, make_scale_decision
from sprat.scaling.presets import PRESETS, preset

UP, DOWN, HOLD = ScaleDirection.UP, ScaleDirection.DOWN, ScaleDirection.HOLD
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
QUIET = {"queue_depth": 0, "p95_latency_ms": 100.0, "in_flight_jobs": 0}


def state(current: int = 4, **about: Any) -> EngineState:
    values = {"queue_depth": 30, "p95_latency_ms": 1500.0, "in_flight_jobs": 2, **about}
    return EngineState(current_workers=current, **values)


def decide(current: int = 4, config: EngineConfig | None = None, **about: Any) -> Any:
    return make_scale_decision(state(current, **about), config or EngineConfig(), NOON)


def test_4_1_defaults_are_those_of_the_document() -> None:
    assert EngineConfig.from_env({}) == EngineConfig()
    assert EngineConfig().as_dict() == {
        "min_workers": 1,
        "max_workers": 12,
        "target_p95_latency_ms": 2000,
        "target_queue_depth": 50,
        "scale_up_step": 2,
        "scale_down_step": 1,
        "scale_decision_interval_ms": 1500,
    }


def test_4_1_a_state_alone_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the document's example: the environment is the config, the clock the moment."""
    monkeypatch.setenv("SCALE_UP_STEP", "3")
    just_now = datetime.now(UTC)
    ago = just_now - timedelta(seconds=60)
    loaded = state(4, queue_depth=51, last_scale_time=ago)
    decision = make_scale_decision(loaded)
    assert (decision.direction, decision.desired_workers, decision.current_workers) == (UP, 7, 4)
    assert decision.direction.value == "up"
    assert make_scale_decision(loaded.replace(last_scale_time=just_now)).direction == HOLD


@pytest.mark.parametrize(
    ("about", "causes"),
    [
        ({"queue_depth": 51}, ["queue depth 51 > 50"]),
        ({"queue_depth": 50}, []),
        ({"p95_latency_ms": 2000.1}, ["p95 latency 2000.1 ms > 2000 ms"]),
        ({"p95_latency_ms": 2000}, []),
        ({"in_flight_jobs": 4, "queue_depth": 1}, ["all 4 workers busy, 1 waiting"]),
        ({"in_flight_jobs": 5, "queue_depth": 1}, ["all 4 workers busy, 1 waiting"]),
        ({"in_flight_jobs": 3, "queue_depth": 1}, []),
        ({"in_flight_jobs": 4, "queue_depth": 0}, []),
        (
            {"queue_depth": 99, "p95_latency_ms": 3000, "in_flight_jobs": 4},
            [
                "queue depth 99 > 50",
                "p95 latency 3000 ms > 2000 ms",
                "all 4 workers busy, 99 waiting",
            ],
        ),
    ],
    ids=str,
)
def test_4_2_up_for_any_cause_and_the_reason_names_each(
    about: dict[str, Any], causes: list[str]
) -> None:
    decision = decide(**about)
    assert decision.direction == (UP if causes else HOLD)
    assert decision.desired_workers == (6 if causes else 4)
    if causes:
        assert decision.reason == " and ".join(causes)


@pytest.mark.parametrize(("current", "desired"), [(9, 11), (10, 12), (11, 12)])
def test_4_2_up_is_capped(current: int, desired: int) -> None:
    assert decide(current, queue_depth=99).desired_workers == desired


def test_4_2_at_the_maximum_it_holds_and_says_so() -> None:
    decision = decide(12, queue_depth=99)
    assert (decision.direction, decision.desired_workers) == (HOLD, 12)
    assert decision.reason == "queue depth 99 > 50, but 12 is the maximum"


@pytest.mark.parametrize(
    ("about", "direction"),
    [
        ({}, DOWN),
        ({"queue_depth": 15}, DOWN),
        ({"queue_depth": 16}, HOLD),
        ({"p95_latency_ms": 1000}, DOWN),
        ({"p95_latency_ms": 1000.1}, HOLD),
        ({"p95_latency_ms": None}, DOWN),
        ({"in_flight_jobs": 7}, DOWN),
        ({"in_flight_jobs": 8}, HOLD),
    ],
    ids=str,
)
def test_4_3_down_when_all_is_quiet(about: dict[str, Any], direction: ScaleDirection) -> None:
    decision = decide(10, **{**QUIET, **about})
    assert decision.direction == direction
    assert decision.desired_workers == (9 if direction == DOWN else 10)


def test_4_3_never_below_the_minimum() -> None:
    assert decide(1, **QUIET).direction == HOLD
    assert decide(2, EngineConfig(scale_down_step=5), **QUIET).desired_workers == 1


def test_4_3_down_names_what_is_low() -> None:
    reason = decide(10, **QUIET).reason
    assert reason == "queue depth 0 <= 15, p95 latency 100 ms <= 1000 ms, utilisation 0% <= 70%"


def test_never_below_the_jobs_that_run() -> None:
    config = EngineConfig(scale_down_step=9)
    assert decide(10, config, **{**QUIET, "in_flight_jobs": 6}).desired_workers == 6


def test_somebody_stays_for_what_waits() -> None:
    config = EngineConfig(min_workers=0)
    assert decide(1, config, **{**QUIET, "queue_depth": 3}).direction == HOLD
    assert decide(1, config, **QUIET).desired_workers == 0
    assert decide(0, config, **QUIET).direction == HOLD
    first = decide(0, config, **{**QUIET, "queue_depth": 1})
    assert (first.desired_workers, first.reason) == (2, "no workers, 1 waiting")


def test_starting_workers_are_neither_idle_nor_a_reason_for_more() -> None:
    config = EngineConfig(min_workers=0)
    quiet = {**QUIET, "queue_depth": 2}
    assert decide(2, config, **quiet, starting_workers=2).direction == HOLD
    assert decide(2, config, **quiet, starting_workers=0).direction == DOWN
    busy = {**QUIET, "queue_depth": 3, "starting_workers": 2, "in_flight_jobs": 2}
    assert decide(4, config, **busy).direction == UP


@pytest.mark.parametrize(
    ("seconds_ago", "direction"), [(0, HOLD), (1.499, HOLD), (1.5, UP), (60, UP)]
)
def test_4_4_nothing_changes_within_the_interval(
    seconds_ago: float, direction: ScaleDirection
) -> None:
    last = NOON - timedelta(seconds=seconds_ago)
    decision = decide(4, queue_depth=99, last_scale_time=last)
    assert decision.direction == direction
    assert decision.terms["cooldown_blocked"] is (direction == HOLD)
    if direction == HOLD:
        assert "pause after the last change" in decision.reason
        assert "then up to 6: queue depth 99 > 50" in decision.reason


def test_4_4_a_pause_that_keeps_nothing_from_happening_is_not_counted_as_a_block() -> None:
    decision = decide(4, last_scale_time=NOON)
    assert (decision.direction, decision.terms["cooldown_blocked"]) == (HOLD, False)


@pytest.mark.parametrize(
    "last",
    [
        NOON - timedelta(seconds=1),
        (NOON - timedelta(seconds=1)).astimezone(timezone(timedelta(hours=-7))),
        (NOON - timedelta(seconds=1)).replace(tzinfo=None),  # what utcnow() gives
        NOON.timestamp() - 1,
    ],
    ids=["aware", "another zone", "naive is UTC", "seconds"],
)
def test_4_4_moments_in_any_form(last: Any) -> None:
    assert decide(queue_depth=99, last_scale_time=last).direction == HOLD
    later = make_scale_decision(
        state(queue_depth=99, last_scale_time=last, now=NOON + timedelta(seconds=1)),
        EngineConfig(),
    )
    assert later.direction == UP


def test_a_change_in_the_future_is_explained() -> None:
    decision = decide(queue_depth=99, last_scale_time=NOON + timedelta(hours=2))
    assert decision.direction == HOLD
    assert "is last_scale_time in UTC?" in decision.reason


@pytest.mark.parametrize(
    ("current", "direction", "desired"), [(0, UP, 4), (3, UP, 4), (9, DOWN, 8), (99, DOWN, 8)]
)
def test_4_4_a_fleet_outside_its_bounds_is_brought_back_at_once(
    current: int, direction: ScaleDirection, desired: int
) -> None:
    """In one step, whatever its size, and without waiting for the interval."""
    config = EngineConfig(min_workers=4, max_workers=8, scale_up_step=1)
    decision = decide(current, config, last_scale_time=NOON, in_flight_jobs=current)
    assert (decision.direction, decision.desired_workers) == (direction, desired)
    assert "the minimum 4" in decision.reason or "the maximum 8" in decision.reason


def test_4_4_step_0_holds() -> None:
    config = EngineConfig(scale_up_step=0, scale_down_step=0)
    up, down = decide(4, config, queue_depth=99), decide(4, config, **QUIET)
    assert up.direction == down.direction == HOLD
    assert up.reason == "queue depth 99 > 50, but scale_up_step is 0"
    assert "scale_down_step is 0" in down.reason


def test_4_11_min_equal_to_max_with_steps_0_freezes_the_fleet() -> None:
    config = EngineConfig(min_workers=4, max_workers=4, scale_up_step=0, scale_down_step=0)
    for about in (QUIET, {"queue_depth": 9999}, {"p95_latency_ms": 1e9}):
        assert decide(4, config, **about).desired_workers == 4
    assert decide(2, config).desired_workers == 4


def test_4_4_target_0_does_not_crash() -> None:
    config = EngineConfig(target_queue_depth=0, target_p95_latency_ms=0)
    assert decide(4, config, **QUIET, starting_workers=0).direction == UP
    assert decide(4, config, queue_depth=1, p95_latency_ms=0).direction == UP
    assert decide(4, config, queue_depth=0, p95_latency_ms=0).direction == DOWN


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"MIN_WORKERS": "few"}, "MIN_WORKERS must be a whole number from 0 to 100000, not 'few'"),
        ({"MAX_WORKERS": "-1"}, "MAX_WORKERS must be a whole number"),
        ({"MAX_WORKERS": "1.5"}, "MAX_WORKERS must be a whole number"),
        ({"MAX_WORKERS": "9" * 5000}, "MAX_WORKERS must be a whole number"),
        ({"TARGET_P95_LATENCY_MS": "nan"}, "TARGET_P95_LATENCY_MS must be a number"),
        ({"SCALE_DECISION_INTERVAL_MS": "-5"}, "SCALE_DECISION_INTERVAL_MS must be a number"),
        ({"MIN_WORKERS": "13"}, "min_workers 13 is more than max_workers 12"),
    ],
)
def test_4_1_nonsense_in_the_environment_is_refused(variables: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        EngineConfig.from_env(variables)


def test_4_1_the_environment_is_read() -> None:
    given = {"MIN_WORKERS": " 2 ", "TARGET_P95_LATENCY_MS": "750.5", "MAX_WORKERS": ""}
    config = EngineConfig.from_env(given)
    assert (config.min_workers, config.max_workers) == (2, 12)
    assert config.target_p95_latency_ms == 750.5


@pytest.mark.parametrize(
    "about",
    [{"queue_depth": -1}, {"in_flight_jobs": 1.5}, {"p95_latency_ms": float("nan")}],
    ids=str,
)
def test_a_state_that_cannot_be_is_refused(about: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(about))):
        decide(**about)


@pytest.mark.parametrize("changes", [{"max_workers": 0}, {"target_queue_depth": -1}], ids=str)
def test_a_config_that_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        decide(config=EngineConfig(**changes))


def test_4_11_presets_by_name() -> None:
    assert set(PRESETS) == {"low-latency", "high-throughput", "balanced", "cost-optimized"}
    assert preset("balanced") == EngineConfig()
    assert tuple(preset("low-latency")) == (4, 24, 500, 10, 3, 1, 1500)
    assert tuple(preset("high-throughput")) == (8, 48, 5000, 200, 4, 2, 1500)
    assert tuple(preset("cost-optimized")) == (1, 6, 8000, 100, 1, 1, 3000)
    assert all(config.checked() for config in PRESETS.values())
    with pytest.raises(InvalidInput, match="did you mean balanced"):
        preset("balance")


# -- properties ---------------------------------------------------------------------------------

configs = st.builds(
    lambda bounds, **rest: EngineConfig(min_workers=bounds[0], max_workers=bounds[1], **rest),
    st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted),
    target_p95_latency_ms=st.floats(0, 5000),
    target_queue_depth=st.integers(0, 100),
    scale_up_step=st.integers(0, 5),
    scale_down_step=st.integers(0, 5),
    scale_decision_interval_ms=st.floats(0, 5000),
)
states = st.builds(
    EngineState,
    current_workers=st.integers(0, 30),
    queue_depth=st.integers(0, 200),
    p95_latency_ms=st.none() | st.floats(0, 10_000),
    in_flight_jobs=st.integers(0, 30),
    last_scale_time=st.none() | st.floats(-10, 10),
    starting_workers=st.integers(0, 5),
    now=st.just(0.0),
)


@given(states, configs)
def test_decisions_are_within_the_bounds_and_consistent(
    seen: EngineState, config: EngineConfig
) -> None:
    decision = make_scale_decision(seen, config)
    assert config.min_workers <= decision.desired_workers <= config.max_workers
    change = decision.desired_workers - seen.current_workers
    assert decision.direction == (UP if change > 0 else DOWN if change < 0 else HOLD)
    assert decision.reason
    assert decision == make_scale_decision(seen, config, 0.0)
    if change < 0 and seen.current_workers <= config.max_workers:
        assert decision.desired_workers >= seen.in_flight_jobs


@given(states, configs, st.integers(1, 100))
def test_more_backlog_never_turns_up_into_less(
    seen: EngineState, config: EngineConfig, more: int
) -> None:
    settled = seen.replace(starting_workers=0)
    fuller = settled.replace(queue_depth=settled.queue_depth + more)
    few, many = make_scale_decision(settled, config), make_scale_decision(fuller, config)
    assert many.desired_workers >= few.desired_workers
