"""Whether jobs take longer than they used to, before they have ended. Pure.

A mean of finished jobs hears of long ones last: while they run, only short ones end. So the seconds
that workers were busy are set against the jobs that ended in them: lately, and over many jobs. When
fewer ended lately than chance explains, jobs have become longer by as much. Both come from the
counts that every pass reads, and what is wrong with both (a retry is no end, what is claimed ahead
does not run) is wrong with their ratio no more.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.model import Snapshot

RECENT_JOBS = 2.0  # lately: as long as so many jobs take, one after the other
KEPT_ENDS = 200.0  # over many jobs: about so many count
CHANCE = 0.75  # deviations that fewer may have ended by chance
FEW = 3.0  # ... and jobs: the last ones of a batch are its long ones


def factor(seen: Snapshot, *, mean: float, scv: float) -> float:
    """How many times as long as they used to jobs take now: 1 or more."""
    busy, ended, all_busy, all_ended = _sums(seen, mean)
    if not busy or not all_ended:
        return 1.0
    expected = busy * all_ended / all_busy
    by_chance = CHANCE * math.sqrt(expected * (1.0 + scv) / 2.0)
    return max(1.0, (expected + FEW) / (ended + FEW + by_chance))


def noted(seen: Snapshot, *, mean: float) -> dict[str, Any]:
    """The note for the next decision: the sums, and what they are counted on from."""
    sums, usual = _sums(seen, mean), _usually_busy(seen, mean)
    return {"runs": [*sums, usual, seen.counts.claimed, _ended(seen), seen.now]}


def _sums(seen: Snapshot, mean: float) -> tuple[float, float, float, float]:
    """Busy seconds and ends, lately and over many jobs."""
    before = seen.memory.get("runs")
    if before is None:
        return 0.0, 0.0, 0.0, 0.0
    busy, ended, all_busy, all_ended, usual, claimed, total, at = before
    passed = max(0.0, seen.now - at)
    worked = passed * min(claimed, usual, seen.counts.claimed)
    more = max(0, _ended(seen) - total)  # finished items are deleted one day
    recent = math.exp(-passed / (RECENT_JOBS * mean))
    fade = min(1.0, KEPT_ENDS / all_ended) if all_ended else 1.0
    return (
        recent * busy + worked,
        recent * ended + more,
        fade * all_busy + worked,
        fade * all_ended + more,
    )


def _usually_busy(seen: Snapshot, mean: float) -> float:
    """How many had work, over about as long as a job takes. Those who have just begun will not end
    yet, so no more than that are counted on."""
    before = seen.memory.get("runs")
    if before is None:
        return 0.0
    *_, usual, claimed, _, at = before
    share = 1.0 - math.exp(-max(0.0, seen.now - at) / mean)
    return float(usual + share * (claimed - usual))


def _ended(seen: Snapshot) -> int:
    return seen.counts.done + seen.counts.poisoned
