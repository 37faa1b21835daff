"""Who may be compared: our policies and those of others, by name, each with its own options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sprat.core import model
from sprat.core.did_you_mean import did_you_mean
from sprat.core.errors import InvalidInput
from sprat.core.record import Record
from sprat.scaling import policies
from sprat.simulation.baselines import dask, keda, knative, oracle, scaled_job, tracking
from sprat.simulation.fleet import Terms
from sprat.simulation.policy import POLL_SECONDS, QUIET_SECONDS, simulate
from sprat.simulation.replay import replay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.simulation.replay import ReplayResult, Watcher
    from sprat.simulation.trace import Trace


ORACLE = "oracle"
BASELINES: dict[str, tuple[Any, Any]] = {
    "keda": (keda.Options, keda.Keda),
    "scaled-job": (scaled_job.Options, scaled_job.ScaledJob),
    "knative": (knative.Options, knative.Knative),
    "dask": (dask.Options, dask.Dask),
    "tracking": (tracking.Options, tracking.Tracking),
    ORACLE: (oracle.Options, oracle.foresee),
}
MAY_BE_ZERO = ("stabilisation_seconds", "cooldown_seconds", "grace_seconds")
NAMES = (*policies.NAMES, *BASELINES)


class Conditions(Record):
    """What is the same for all who are compared."""

    cold_start_seconds: float = 60.0
    wait_target: float | None = 60.0
    poll_seconds: float = POLL_SECONDS  # of our policies; others have their own
    quiet_seconds: float = QUIET_SECONDS  # ... while nothing happens
    min_workers: int = 0
    max_workers: int = 1000
    idle_seconds: float = 1.0
    on_push: bool = True  # our policies are asked at pushes too, as in a pool with a processor


def check(name: str, options: Mapping[str, Any]) -> None:
    """Refuse an unknown policy, or an option that it does not have."""
    if name in policies.NAMES:
        policies.check(model.PoolSettings(policy=name, policy_options=options))
    elif name not in BASELINES:
        raise InvalidInput(f"there is no policy {name!r}{did_you_mean(name, NAMES)}")
    else:
        _options(name, options)


def run(
    trace: Trace,
    name: str,
    options: Mapping[str, Any],
    conditions: Conditions,
    watch: Watcher | None = None,
) -> ReplayResult:
    """Replay the trace through one of them."""
    check(name, options)
    if name in policies.NAMES:
        return _run_policy(trace, name, options, conditions, watch)
    own = _options(name, options)
    if name == ORACLE:
        wait = conditions.wait_target if conditions.wait_target is not None else own.wait_seconds
        return oracle.foresee(trace, wait, conditions.cold_start_seconds, conditions.max_workers)
    sizer = BASELINES[name][1](own)
    terms = Terms(
        cold_start_seconds=conditions.cold_start_seconds,
        min_workers=conditions.min_workers,
        max_workers=conditions.max_workers,
    )
    if isinstance(own, scaled_job.Options):
        terms = terms.replace(idle_seconds=0.0, max_jobs=1 if own.one_message else 0)
    return replay(trace, sizer, terms, wait_target=conditions.wait_target, policy=name, watch=watch)


def _run_policy(
    trace: Trace,
    name: str,
    options: Mapping[str, Any],
    conditions: Conditions,
    watch: Watcher | None,
) -> ReplayResult:
    settings = model.PoolSettings(
        policy=name,
        policy_options=options,
        min_workers=conditions.min_workers,
        max_workers=conditions.max_workers,
        idle_seconds=conditions.idle_seconds,
    )
    return simulate(
        trace,
        settings,
        cold_start_seconds=conditions.cold_start_seconds,
        wait_target=conditions.wait_target,
        poll_seconds=conditions.poll_seconds,
        quiet_seconds=conditions.quiet_seconds,
        on_push=conditions.on_push,
        watch=watch,
    )


def _options(name: str, options: Mapping[str, Any]) -> Any:
    kind = BASELINES[name][0]
    defaults = kind().as_dict()
    for option, value in options.items():
        if option not in defaults:
            raise InvalidInput(f"{name} has no option {option!r}{did_you_mean(option, defaults)}")
        low = 0.0 if option in MAY_BE_ZERO else 0.001
        _check_kind(f"the option {option} of {name}", value, defaults[option], low)
    return kind(**options)


def _check_kind(what: str, value: object, default: object, low: float) -> None:
    if isinstance(default, bool | str):
        if type(value) is not type(default):
            raise InvalidInput(f"{what} must be like {default!r}, not {value!r}")
    elif isinstance(value, bool) or not isinstance(value, int | float) or not low <= value < 1e9:
        raise InvalidInput(f"{what} must be a number from {low:g} on, not {value!r}")
