"""From the size that a rule asks for to a decision: bounds, brakes, delays and victims. Pure.

A rule says how many workers it wants, which ones it needs in any case, and why. What holds for all
of them is here: the fleet stays between its minimum and its maximum, nobody busy is sent away
except above the maximum, growth is immediate, and shrinking waits for its delay.
"""

from __future__ import annotations

import math

from sprat.core.fields import MAX_WORKERS
from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.core.record import Record
from sprat.scaling import drain_order
from sprat.scaling.launch_backoff import braked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Want(Record):
    """What a rule asks for. `keep` is what it needs of the fleet that is there: it sets no worker
    in motion, it only keeps those from leaving that would be wanted again at once."""

    workers: int
    keep: int = 0
    reason: str
    terms: Mapping[str, Any] = {}
    down_delay_seconds: float = 0.0  # since the last change down


def ceil(value: float) -> int:
    """Rounded up to whole workers, but not for the last digits of a division, which are noise."""
    return math.ceil(min(value, MAX_WORKERS) * (1.0 - 1e-9))


def busy(seen: Snapshot) -> int:
    """How many workers of the fleet have work."""
    return sum(drain_order.is_busy(worker) for worker in drain_order.fleet(seen.workers))


def decision(policy: str, seen: Snapshot, settings: PoolSettings, want: Want) -> Decision:
    """The decision that brings the fleet towards what is wanted, as far as it may go now."""
    current = seen.active + seen.starting
    desired = target(seen, settings, want)
    launch, reason = 0, want.reason
    if seen.held:
        reason = f"{reason}; {seen.held} more are of tenants at their limit"
    drain: tuple[str, ...] = ()
    if desired > current:
        launch, reason = braked(seen, desired - current, reason)
    elif desired < current:
        drain, reason = _drain(seen, settings, want.replace(reason=reason), current - desired)
    return Decision(
        pool=seen.pool,
        group=seen.group,
        policy=policy,
        direction="up" if launch else "down" if drain else "hold",
        current=current,
        desired=current + launch - len(drain),
        reason=f"{reason}; the pool is paused" if seen.paused else reason,
        inputs={**_inputs(seen, settings), **want.terms, "wanted": want.workers},
        launch=launch,
        drain=drain,
        max_workers=settings.max_workers,
        start_deadline_seconds=settings.reservation_seconds,
        capabilities=() if seen.group is None else (seen.group,),
    )


def target(seen: Snapshot, settings: PoolSettings, want: Want) -> int:
    """The size to have: within its bounds, with those kept that the rule needs and the busy."""
    bounded = min(max(want.workers, settings.min_workers), settings.max_workers)
    kept = min(seen.active + seen.starting, max(want.keep, busy(seen)))
    return min(max(bounded, kept), settings.max_workers)


def _drain(
    seen: Snapshot, settings: PoolSettings, want: Want, surplus: int
) -> tuple[tuple[str, ...], str]:
    """Whom to send away, and why, or why not yet. Above the maximum nothing is waited for."""
    excess = seen.active + seen.starting - settings.max_workers
    left = delay_left(seen, want.down_delay_seconds)
    reason = f"{want.reason}; down in {left:.0f} s at the earliest" if left > 0 else want.reason
    if excess > 0:
        reason = f"{reason}; {excess} more than the maximum {settings.max_workers}"
    going = surplus if left <= 0 else max(0, excess)
    return drain_order.choose(seen.workers, going, spare_busy=excess <= 0), reason


def delay_left(seen: Snapshot, delay_seconds: float) -> float:
    """Seconds until the fleet may shrink again."""
    if seen.last_down_at is None:
        return 0.0
    return seen.last_down_at + delay_seconds - seen.now


def _inputs(seen: Snapshot, settings: PoolSettings) -> dict[str, Any]:
    return {
        "ready": seen.counts.ready,
        **({"held": seen.held} if seen.held else {}),
        "claimed": seen.counts.claimed,
        "active": seen.active,
        "idle": seen.idle,
        "starting": seen.starting,
        "min_workers": settings.min_workers,
        "max_workers": settings.max_workers,
        "launch_failures": seen.launch_failures,
    }
