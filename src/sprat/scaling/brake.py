"""The brake on launches that keep failing: one at a time, ever more slowly. Pure.

A handler that cannot be imported or a full machine would otherwise be answered with processes that
die as fast as they can be started.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.model import Snapshot

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0


def braked(seen: Snapshot, launch: int, reason: str) -> tuple[int, str]:
    """How many of the launches that are wanted may be tried now, and the reason for that."""
    pause = pause_left(seen)
    if launch and pause > 0:
        return 0, f"{_failures(seen)}: the next try is in {pause:.0f} s"
    if launch > 1 and seen.launch_failures:
        return 1, f"{_failures(seen)}: trying one"
    return launch, reason


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
