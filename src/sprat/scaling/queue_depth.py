"""The queue-depth policy: one worker for each item that nobody idle will take, up to a maximum.

Launches that keep failing (a handler that cannot be imported, a full machine) are tried one at a
time, ever more slowly, instead of filling the machine with processes that die.
"""

from __future__ import annotations

from sprat.model import Decision, PoolSettings, Snapshot

NAME = "queue-depth"
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0


def wanted(*, ready: int, idle: int, starting: int, active: int, maximum: int) -> int:
    """How many workers to add."""
    return max(0, min(ready - idle - starting, maximum - active - starting))


def decide(seen: Snapshot, settings: PoolSettings) -> Decision:
    """The decision for one pool, with its reason. Never drains: workers leave by themselves."""
    ready = 0 if seen.paused else seen.counts.ready
    current = seen.active + seen.starting
    launch = wanted(
        ready=ready,
        idle=seen.idle,
        starting=seen.starting,
        active=seen.active,
        maximum=settings.max_workers,
    )
    launch = max(launch, settings.min_workers - current)
    reason = _reason(seen, settings, launch)
    pause = pause_left(seen)
    if launch and pause > 0:
        launch, reason = 0, f"{_failures(seen)}: the next try is in {pause:.0f} s"
    elif launch > 1 and seen.launch_failures:
        launch, reason = 1, f"{_failures(seen)}: trying one"
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
            "claimed": seen.counts.claimed,
            "active": seen.active,
            "idle": seen.idle,
            "starting": seen.starting,
            "max_workers": settings.max_workers,
            "launch_failures": seen.launch_failures,
        },
        launch=launch,
        max_workers=settings.max_workers,
        start_deadline_seconds=settings.start_deadline_seconds,
    )


def _reason(seen: Snapshot, settings: PoolSettings, launch: int) -> str:
    waiting = f"{seen.counts.ready} waiting"
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


def _failures(seen: Snapshot) -> str:
    n = seen.launch_failures
    return f"{n} launch{'' if n == 1 else 'es'} in a row did not come to work"


def pause_left(seen: Snapshot) -> float:
    """Seconds until a launch may be tried again after those that failed."""
    if not seen.launch_failures or seen.last_launch_failure_at is None:
        return 0.0
    pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** (seen.launch_failures - 1))
    return seen.last_launch_failure_at + pause - seen.now
