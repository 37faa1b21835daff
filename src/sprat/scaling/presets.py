"""Ready-made settings for the step-wise engine, by what matters most."""

from __future__ import annotations

from sprat.core.did_you_mean import did_you_mean
from sprat.core.errors import InvalidInput
from sprat.scaling.engine import EngineConfig

PRESETS = {
    # dear, and quick to answer a spike
    "low-latency": EngineConfig(
        min_workers=4,
        max_workers=24,
        target_p95_latency_ms=500,
        target_queue_depth=10,
        scale_up_step=3,
    ),
    # large bursts, nobody waits for a single job
    "high-throughput": EngineConfig(
        min_workers=8,
        max_workers=48,
        target_p95_latency_ms=5000,
        target_queue_depth=200,
        scale_up_step=4,
        scale_down_step=2,
    ),
    "balanced": EngineConfig(),
    # few workers, changed slowly
    "cost-optimized": EngineConfig(
        max_workers=6,
        target_p95_latency_ms=8000,
        target_queue_depth=100,
        scale_up_step=1,
        scale_decision_interval_ms=3000,
    ),
}


def preset(name: object) -> EngineConfig:
    """One of them, or InvalidInput."""
    if not isinstance(name, str) or name not in PRESETS:
        raise InvalidInput(f"there is no preset {name!r}{did_you_mean(name, PRESETS)}")
    return PRESETS[name]
