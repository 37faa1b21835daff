"""How large a scale set may be and how it reacts: five numbers, from four places. Pure.

The environment beats the file's `overrides`, which beat what the orchestrator says, which beats the
defaults. A number that has a second name elsewhere in sprat may be called by it.
"""

from __future__ import annotations

import math

from sprat.core.errors import InvalidInput
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_WORKERS = 100_000
MAX_SECONDS = 10 * 365 * 86400.0


class ScaleSetLimits(Record):
    """What a scale set goes by."""

    min_replicas: int = 0
    max_replicas: int = 10
    target_pending_per_worker: float = 1.0  # 0: the queue does not count
    scale_down_delay_seconds: float = 300.0  # between two changes down
    poll_interval_seconds: float = 30.0


NAMES = ScaleSetLimits._names
ALIASES = {
    "min_workers": "min_replicas",
    "max_workers": "max_replicas",
    "scale_up_threshold": "target_pending_per_worker",
    "cooldown_period": "scale_down_delay_seconds",
}
# Read elsewhere, and without a meaning here: a warning says why.
UNUSED = {"scale_down_threshold": "workers leave when fewer are needed than there are"}
HIGHEST: dict[str, float] = {
    "min_replicas": MAX_WORKERS,
    "max_replicas": MAX_WORKERS,
    "target_pending_per_worker": 1e9,
    "scale_down_delay_seconds": MAX_SECONDS,
    "poll_interval_seconds": 86400.0,
}


def number(name: str, value: object, shown: str = "") -> float:
    """The value of one of them, or InvalidInput; `shown` is what the user calls it."""
    shown, high = shown or name, HIGHEST[name]
    is_whole = name.endswith("_replicas")
    if isinstance(value, bool) or not isinstance(value, int if is_whole else int | float):
        number_ = math.nan
    else:
        number_ = value
    if not 0 <= number_ <= high:
        kind = "a whole number" if is_whole else "a number"
        raise InvalidInput(f"{shown} must be {kind} from 0 to {high:g}, not {value!r}")
    if name == "poll_interval_seconds" and not number_:
        raise InvalidInput(f"{shown} must be more than 0")
    return number_


def from_environment(environment: Mapping[str, str]) -> dict[str, float]:
    """What MIN_REPLICAS and the others say; nonsense is refused."""
    found: dict[str, float] = {}
    for name in NAMES:
        text = environment.get(name.upper(), "").strip()
        if text:
            found[name] = number(name, _read(text, name), name.upper())
    return found


def _read(text: str, name: str) -> object:
    try:
        return int(text) if name.endswith("_replicas") else float(text)
    except ValueError:
        return text


def merged(
    remote: Mapping[str, float], overrides: Mapping[str, float], environment: Mapping[str, float]
) -> ScaleSetLimits:
    """The numbers that count. A minimum above the maximum is the maximum."""
    given: dict[str, Any] = {**remote, **overrides, **environment}
    limits = ScaleSetLimits(**given)
    return limits.replace(min_replicas=min(limits.min_replicas, limits.max_replicas))
