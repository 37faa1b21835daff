"""The latency policy: the step-wise engine (engine.py), fed with what the store measured.

The pool's own min_workers and max_workers are its bounds; a preset brings only targets and steps.
Latency is the 95th percentile of waiting plus that of running, over the jobs of the last minutes.
"""

from __future__ import annotations

from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.core.record import Record
from sprat.scaling import engine, options, sizing
from sprat.scaling.presets import preset

NAME = "latency"


class Options(Record):
    """Each as in EngineConfig; what is None is as in the preset."""

    preset: str = "balanced"
    target_p95_latency_ms: float | None = None
    target_queue_depth: int | None = None
    scale_up_step: int | None = None
    scale_down_step: int | None = None
    scale_decision_interval_ms: float | None = None


def _preset(value: object, name: str) -> None:
    preset(value if isinstance(value, str) else repr(value))


CHECKS = {
    "preset": _preset,
    "target_p95_latency_ms": options.optional(options.number(engine.MAX_MS)),
    "target_queue_depth": options.optional(options.whole(1_000_000_000)),
    "scale_up_step": options.optional(options.whole()),
    "scale_down_step": options.optional(options.whole()),
    "scale_decision_interval_ms": options.optional(options.number(engine.MAX_MS)),
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
