"""The brakes on launches. Pure.

Launches that keep failing: one at a time, ever more slowly. A handler that cannot be imported or a
full machine would otherwise be answered with processes that die as fast as they can be started.

A saturated machine: no more than one worker per core. The work that waits would otherwise be
answered with workers that slow each other down, until their heartbeats are late and they are taken
for dead.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.model import Decision, Snapshot

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
SATURATED_PAUSE_SECONDS = 2.0  # until the next look at a saturated machine, while work waits


def braked(seen: Snapshot, launch: int, reason: str) -> tuple[int, str]:
    """How many of the launches that are wanted may be tried now, and the reason for that."""
    pause = pause_left(seen)
    if launch and pause > 0:
        return 0, f"{_failures(seen)}: the next try is in {pause:.0f} s"
    if launch > 1 and seen.launch_failures:
        return 1, f"{_failures(seen)}: trying one"
    return launch, reason


def spared(seen: Snapshot, decision: Decision) -> Decision:
    """The decision with no more launches than a saturated machine should get."""
    room = room_left(seen)
    if room is None or decision.launch <= room:
        return decision
    cause = "" if seen.saturated is None else seen.saturated.cause
    verb = f"launch {room}" if room else "hold"
    return decision.replace(
        direction="up" if room else "down" if decision.drain else "hold",
        desired=decision.desired - decision.launch + room,
        launch=room,
        reason=f"{decision.launch} wanted, {verb}: the machine is saturated: {cause}",
    )


def room_left(seen: Snapshot) -> int | None:
    """How many workers may be launched on a saturated machine; None: it is not saturated. The
    first may be in any case: the work has to go on."""
    if seen.saturated is None:
        return None
    there = seen.active + seen.starting - len(seen.suspended)
    return max(0, max(1, seen.saturated.may_run) - there)


def pause_left(seen: Snapshot) -> float:
    """Seconds until a launch may be tried again after those that failed."""
    if not seen.launch_failures or seen.last_launch_failure_at is None:
        return 0.0
    doublings = min(seen.launch_failures - 1, 60)
    pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0**doublings)
    return seen.last_launch_failure_at + pause - seen.now


def _failures(seen: Snapshot) -> str:
    n = seen.launch_failures
    return f"{n} launch{'' if n == 1 else 'es'} in a row did not come to work"
