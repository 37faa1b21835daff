"""How large a scale set may be and how it reacts: five numbers, from four places. Pure.

The environment beats the file's `overrides`, which beat what the orchestrator says, which beats the
defaults. A number that has a second name elsewhere in sprat may be called by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sprat.core import fields
from sprat.core.record import Record


class ScaleSetLimits(Record):
    """What a scale set goes by."""

    min_replicas: int = 0
    max_replicas: int = 10
    target_pending_per_worker: float = 1.0  # 0: the queue does not count
    scale_down_delay_seconds: float = 300.0  # between two changes down
    poll_interval_seconds: float = 30.0


ALIASES = {
    "min_workers": "min_replicas",
    "max_workers": "max_replicas",
    "scale_up_threshold": "target_pending_per_worker",
    "cooldown_period": "scale_down_delay_seconds",
}
# Read elsewhere, and without a meaning here: a warning says why.
UNUSED = {"scale_down_threshold": "workers leave when fewer are needed than there are"}
FIELDS = {
    "min_replicas": fields.workers().means("workers that run even without work"),
    "max_replicas": fields.workers().means("never more, starting ones included"),
    "target_pending_per_worker": fields.number(0, 1e9).means("waiting items per worker"),
    "scale_down_delay_seconds": fields.seconds().means("between two changes down"),
    "poll_interval_seconds": fields.more_than_zero(fields.seconds(86400.0)).means(
        "between two passes when nothing happens"
    ),
}


def merged(
    remote: Mapping[str, float], overrides: Mapping[str, float], environment: Mapping[str, float]
) -> ScaleSetLimits:
    """The numbers that count. A minimum above the maximum is the maximum."""
    given: dict[str, Any] = {**remote, **overrides, **environment}
    limits = ScaleSetLimits(**given)
    return limits.replace(min_replicas=min(limits.min_replicas, limits.max_replicas))
