"""The queue-depth policy: one worker for each item that nobody idle will take, up to a maximum.

It only ever adds: its workers leave by themselves when there is nothing left to do.
"""

from __future__ import annotations

from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.core.record import Record
from sprat.scaling.launch_backoff import braked, pause_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.fields import Field

__all__ = ["FIELDS", "NAME", "Options", "decide", "is_needed", "pause_left", "wanted"]

NAME = "queue-depth"
LEAVES_WHEN_IDLE = True  # a worker without work does not ask whether it is wanted


class Options(Record):
    """None: min_workers and max_workers say it all."""


FIELDS: dict[str, Field] = {}


def wanted(*, ready: int, idle: int, starting: int, active: int, maximum: int) -> int:
    """How many workers to add."""
    return max(0, min(ready - idle - starting, maximum - active - starting))


def decide(seen: Snapshot, settings: PoolSettings) -> Decision:
    """The decision for one pool, with its reason. Never drains: workers leave by themselves."""
    current = seen.active + seen.starting
    launch = wanted(
        ready=seen.claimable,
        idle=seen.idle,
        starting=seen.starting,
        active=seen.active,
        maximum=settings.max_workers,
    )
    launch = max(launch, settings.min_workers - current)
    launch, reason = braked(seen, launch, _reason(seen, settings, launch))
    return Decision(
        pool=seen.pool,
        group=seen.group,
        policy=NAME,
        direction="up" if launch else "hold",
        current=current,
        desired=current + launch,
        reason=reason,
        inputs={
            "ready": seen.counts.ready,
            **({"held": seen.held} if seen.held else {}),
            "claimed": seen.counts.claimed,
            "active": seen.active,
            "idle": seen.idle,
            "starting": seen.starting,
            "max_workers": settings.max_workers,
            "launch_failures": seen.launch_failures,
        },
        launch=launch,
        max_workers=settings.max_workers,
        start_deadline_seconds=settings.reservation_seconds,
        capabilities=() if seen.group is None else (seen.group,),
    )


def is_needed(seen: Snapshot, settings: PoolSettings) -> bool:
    """Whether a worker that has been idle for a while has to stay all the same."""
    return 0 < seen.active <= settings.min_workers


def _reason(seen: Snapshot, settings: PoolSettings, launch: int) -> str:
    waiting = f"{seen.counts.ready} waiting"
    if seen.held:
        waiting = f"{waiting}, {seen.held} of them of tenants at their limit"
    fleet = f"{seen.active} active ({seen.idle} idle), {seen.starting} starting"
    limit = f"maximum {settings.max_workers}"
    if seen.paused:
        return f"{waiting}, but the pool is paused"
    if launch:
        return f"{waiting}, {fleet}, {limit}: launch {launch}"
    if not seen.counts.ready:
        return f"nothing is waiting, {fleet}"
    if seen.active + seen.starting >= settings.max_workers:
        return f"{waiting}, {fleet}: at the {limit}"
    return f"{waiting}, {fleet}: enough are idle or starting"
