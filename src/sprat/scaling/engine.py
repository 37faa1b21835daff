"""A step at a time, by queue depth and latency: what was seen in, a decision with its reason out.

Up when any of these holds, by `scale_up_step`: more jobs wait than the target; the 95th percentile
of latency is above its target; every worker is busy and something waits. Down when all of these
hold, by `scale_down_step`: the queue is at most 30 % of its target, latency at most half of its
target, and at most 70 % of the workers are busy. In between, and for a while after each change, the
fleet stays as it is. A fleet outside its bounds is brought back at once, whatever else is true.

`make_scale_decision` is pure when it is given a config and a moment. Left out, the config is read
from the environment and the moment from the clock.
"""

from __future__ import annotations

import math
from enum import StrEnum

from sprat.config import environment
from sprat.core import fields
from sprat.core.errors import InvalidInput
from sprat.core.record import Record
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any

    Moment = datetime | float  # seconds since 1970; a datetime without a zone is taken as UTC

LOW_QUEUE = 0.3  # of the target: at most so much may wait while the fleet shrinks
LOW_LATENCY = 0.5  # of the target
LOW_UTILISATION = 0.7  # of the workers
MAX_MS = 10 * 365 * 86400.0 * 1000


class ScaleDirection(StrEnum):
    UP = "up"
    DOWN = "down"
    HOLD = "hold"


class EngineState(Record):
    """What was seen. `starting_workers` are those of `current_workers` that have not arrived: each
    will take a waiting job, so they are neither idle nor a reason to add more."""

    current_workers: int
    queue_depth: int
    p95_latency_ms: float | None = None  # None: nothing has finished lately
    in_flight_jobs: int = 0
    last_scale_time: Moment | None = None  # None: never
    starting_workers: int = 0
    now: Moment | None = None


class ScaleDecision(Record):
    """`terms` are the numbers that led to it; `cooldown_blocked` among them says that there was a
    reason for a change, but it is too early."""

    direction: ScaleDirection
    desired_workers: int
    reason: str
    current_workers: int
    terms: Mapping[str, Any] = {}


class EngineConfig(Record):
    """The bounds, targets and steps, with the names of their environment variables in capitals."""

    min_workers: int = 1
    max_workers: int = 12
    target_p95_latency_ms: float = 2000
    target_queue_depth: int = 50
    scale_up_step: int = 2  # 0: never up
    scale_down_step: int = 1  # 0: never down
    scale_decision_interval_ms: float = 1500  # between two changes

    @classmethod
    def from_env(cls, variables: Mapping[str, str] | None = None) -> EngineConfig:
        """From MIN_WORKERS, MAX_WORKERS and so on; those that are not set have their defaults."""
        given = environment.given(variables)
        return cls(**environment.numbers(given, FIELDS)).checked()

    def checked(self) -> EngineConfig:
        """Itself, or InvalidInput."""
        for name, value in self.as_dict().items():
            if not _is_amount(value):
                raise InvalidInput(f"{name} must be a number that is not negative, not {value!r}")
        if self.min_workers > self.max_workers:
            raise InvalidInput(
                f"min_workers {self.min_workers} is more than max_workers {self.max_workers}"
            )
        return self


WORKERS = fields.workers()
MILLISECONDS = fields.number(0, MAX_MS)

FIELDS = {
    "min_workers": WORKERS.means("the smallest fleet"),
    "max_workers": WORKERS.means("the largest fleet"),
    "target_p95_latency_ms": MILLISECONDS.means(
        "above: up; below half of it: down, if all is quiet"
    ),
    "target_queue_depth": fields.whole(0, 1_000_000_000).means(
        "above: up; below 30 % of it: down, if all is quiet"
    ),
    "scale_up_step": WORKERS.means("workers at a time; 0: never up"),
    "scale_down_step": WORKERS.means("workers at a time; 0: never down"),
    "scale_decision_interval_ms": MILLISECONDS.means("between two changes"),
}


def make_scale_decision(
    state: EngineState, config: EngineConfig | None = None, now: Moment | None = None
) -> ScaleDecision:
    """How many workers there should be, and why."""
    config = EngineConfig.from_env() if config is None else config.checked()
    _check(state)
    if state.current_workers < config.min_workers:
        return _bounded(state, config.min_workers, f"fewer than the minimum {config.min_workers}")
    if state.current_workers > config.max_workers:
        return _bounded(state, config.max_workers, f"more than the maximum {config.max_workers}")
    wish = _up(state, config) or _down(state, config) or _hold(state, "within its targets")
    left = cooldown_left(state, config, now)
    if left <= 0:
        return wish
    why = f"{left:.1f} s of the pause after the last change are left"
    if left > config.scale_decision_interval_ms / 1000:
        why = f"the last change is {left:.0f} s ahead of the clock: is last_scale_time in UTC?"
    blocked = wish.direction != ScaleDirection.HOLD
    if blocked:
        why = f"{why} (then {wish.direction.value} to {wish.desired_workers}: {wish.reason})"
    return _hold(state, why, cooldown_blocked=blocked)


def cooldown_left(state: EngineState, config: EngineConfig, now: Moment | None = None) -> float:
    """Seconds until the next change may be made, or less than 0."""
    last = _seconds(state.last_scale_time)
    if last is None:
        return -math.inf
    moment = _seconds(state.now if now is None else now)
    elapsed = (_clock() if moment is None else moment) - last
    return config.scale_decision_interval_ms / 1000 - elapsed


# -- the rule -----------------------------------------------------------------------------------


def _up(state: EngineState, config: EngineConfig) -> ScaleDecision | None:
    causes = _causes(state, config)
    if not causes:
        return None
    reason = " and ".join(causes)
    desired = min(state.current_workers + config.scale_up_step, config.max_workers)
    if config.scale_up_step == 0:
        return _hold(state, f"{reason}, but scale_up_step is 0")
    if desired == state.current_workers:
        return _hold(state, f"{reason}, but {desired} is the maximum")
    return _decision(state, ScaleDirection.UP, desired, reason)


def _causes(state: EngineState, config: EngineConfig) -> list[str]:
    causes = []
    if state.queue_depth > config.target_queue_depth:
        causes.append(f"queue depth {state.queue_depth} > {config.target_queue_depth}")
    if _latency(state) > config.target_p95_latency_ms:
        causes.append(f"p95 latency {_latency(state):g} ms > {config.target_p95_latency_ms:g} ms")
    if _engaged(state) >= state.current_workers and state.queue_depth > _arriving(state):
        fleet = (
            f"all {state.current_workers} workers busy" if state.current_workers else "no workers"
        )
        causes.append(f"{fleet}, {state.queue_depth} waiting")
    return causes


def _down(state: EngineState, config: EngineConfig) -> ScaleDecision | None:
    """Never below the jobs that run; and while something waits somebody stays to take it."""
    if state.current_workers <= config.min_workers or not _is_quiet(state, config):
        return None
    reason = (
        f"queue depth {state.queue_depth} <= {LOW_QUEUE * config.target_queue_depth:g}, "
        f"p95 latency {_latency(state):g} ms <= {LOW_LATENCY * config.target_p95_latency_ms:g} ms, "
        f"utilisation {_utilisation(state):.0%} <= {LOW_UTILISATION:.0%}"
    )
    if config.scale_down_step == 0:
        return _hold(state, f"{reason}, but scale_down_step is 0")
    needed = max(config.min_workers, _engaged(state), 1 if state.queue_depth else 0)
    desired = max(state.current_workers - config.scale_down_step, needed)
    if desired >= state.current_workers:
        return _hold(state, f"{reason}, but {needed} are needed")
    return _decision(state, ScaleDirection.DOWN, desired, reason)


def _is_quiet(state: EngineState, config: EngineConfig) -> bool:
    return (
        state.queue_depth <= LOW_QUEUE * config.target_queue_depth
        and _latency(state) <= LOW_LATENCY * config.target_p95_latency_ms
        and _utilisation(state) <= LOW_UTILISATION
    )


def _latency(state: EngineState) -> float:
    return state.p95_latency_ms or 0.0


def _arriving(state: EngineState) -> int:
    """Starting workers for whom something waits."""
    return min(state.starting_workers, state.queue_depth)


def _engaged(state: EngineState) -> int:
    return state.in_flight_jobs + _arriving(state)


def _utilisation(state: EngineState) -> float:
    return _engaged(state) / state.current_workers if state.current_workers else 0.0


# -- decisions ----------------------------------------------------------------------------------


def _bounded(state: EngineState, bound: int, why: str) -> ScaleDecision:
    is_up = bound > state.current_workers
    reason = f"{state.current_workers} workers are {why}"
    return _decision(state, ScaleDirection.UP if is_up else ScaleDirection.DOWN, bound, reason)


def _hold(state: EngineState, reason: str, *, cooldown_blocked: bool = False) -> ScaleDecision:
    return _decision(
        state,
        ScaleDirection.HOLD,
        state.current_workers,
        reason,
        cooldown_blocked=cooldown_blocked,
    )


def _decision(
    state: EngineState,
    direction: ScaleDirection,
    desired: int,
    reason: str,
    *,
    cooldown_blocked: bool = False,
) -> ScaleDecision:
    return ScaleDecision(
        direction=direction,
        desired_workers=desired,
        reason=reason,
        current_workers=state.current_workers,
        terms={
            "queue_depth": state.queue_depth,
            "p95_latency_ms": state.p95_latency_ms,
            "in_flight_jobs": state.in_flight_jobs,
            "starting_workers": state.starting_workers,
            "utilisation": round(_utilisation(state), 3),
            "cooldown_blocked": cooldown_blocked,
        },
    )


# -- what is given ------------------------------------------------------------------------------


def _check(state: EngineState) -> None:
    for name in ("current_workers", "queue_depth", "in_flight_jobs", "starting_workers"):
        value = getattr(state, name)
        if type(value) is not int or value < 0:
            raise InvalidInput(f"{name} must be a whole number that is not negative, not {value!r}")
    if state.p95_latency_ms is not None and not _is_amount(state.p95_latency_ms):
        raise InvalidInput(
            f"p95_latency_ms must be a number that is not negative, not {state.p95_latency_ms!r}"
        )


def _is_amount(value: object) -> bool:
    return fields.is_number(value) and 0 <= value < math.inf


def _seconds(moment: Moment | None) -> float | None:
    if moment is None or isinstance(moment, int | float):
        return moment
    from datetime import UTC

    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return aware.timestamp()


def _clock() -> float:

    return runtime.time()
