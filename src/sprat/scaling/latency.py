"""The latency policy: the step-wise engine (engine.py), fed with what the store measured.

The pool's own min_workers and max_workers are its bounds; a preset brings only targets and steps.
Latency is the 95th percentile of waiting plus that of running, over the jobs of the last minutes.
"""

from __future__ import annotations

from sprat.core import fields
from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.core.record import Record
from sprat.scaling import engine, sizing
from sprat.scaling.presets import PRESETS, preset

NAME = "latency"


class Options(Record):
    """Each as in EngineConfig; what is None is as in the preset."""

    preset: str = "balanced"
    target_p95_latency_ms: float | None = None
    target_queue_depth: int | None = None
    scale_up_step: int | None = None
    scale_down_step: int | None = None
    scale_decision_interval_ms: float | None = None


FIELDS = {
    "preset": fields.custom(
        " or ".join(PRESETS), lambda value, _: preset(value), enum=list(PRESETS)
    ).means("the values of all options that are not given"),
    **{
        name: fields.optional(field)
        for name, field in engine.FIELDS.items()
        if name not in ("min_workers", "max_workers")
    },
}


def config(settings: PoolSettings) -> engine.EngineConfig:
    own = Options(**settings.policy_options).as_dict()
    base = preset(own.pop("preset"))
    changes = {name: value for name, value in own.items() if value is not None}
    return base.replace(
        min_workers=settings.min_workers, max_workers=settings.max_workers, **changes
    )


def state(seen: Snapshot) -> engine.EngineState:
    measured = seen.stats.starts or seen.stats.finished
    latency = 1000.0 * (seen.stats.wait_p95 + seen.stats.run_p95)
    changes = [at for at in (seen.last_up_at, seen.last_down_at) if at is not None]
    return engine.EngineState(
        current_workers=seen.active + seen.starting,
        queue_depth=seen.claimable,
        p95_latency_ms=round(latency, 1) if measured else None,
        in_flight_jobs=sizing.busy(seen),
        last_scale_time=max(changes, default=None),
        starting_workers=seen.starting,
        now=seen.now,
    )


def decide(seen: Snapshot, settings: PoolSettings) -> Decision:
    made = engine.make_scale_decision(state(seen), config(settings))
    return sizing.decision(
        NAME,
        seen,
        settings,
        sizing.Want(workers=made.desired_workers, reason=made.reason, terms=made.terms),
    )
