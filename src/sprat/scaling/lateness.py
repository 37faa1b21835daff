"""How much caution a target takes, learned from the share of late starts. Pure.

95 % in time means that 5 % may be late: while fewer are, the margin sinks; when more are, it grows.
Starts are counted, not windows, so that over the days the share comes out as it was stated. What
the margin is for depends on the target: one that is shorter than a cold start is met only by
workers that are kept, and each costs; a longer one by launching earlier, which costs little.
"""

from __future__ import annotations

import math

from sprat import histogram
from sprat.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from sprat.model import Snapshot, StatsBucket

FADE = 0.98  # of the usual number of starts, a window: a busy day is forgotten in a day
RECENT = 0.9  # of the starts that were counted before, a window: what is late is told of an hour
ENOUGH_STARTS = 20.0  # of fewer, one late start is more than 5 %: they count for less


class Rule(Record):
    """How a margin is learned."""

    aim: float  # of the share that may be late: bins blur it by about a fifth
    step: float  # deviations that a window of the usual size without a late start gives back
    most_steps: float  # that one window adds: lateness comes in bursts, and one is no rule
    bounds: tuple[float, float]  # in deviations


KEPT = Rule(aim=0.8, step=0.25, most_steps=4.0, bounds=(-1.25, 4.0))
# Where a launch is in time: late starts come in spells of other jobs, far between, so each counts
# for all that were in time meanwhile.
LAUNCHED = Rule(aim=0.6, step=0.1, most_steps=20.0, bounds=(0.0, 3.0))
# ... and where it is so only just, workers are kept as a last resort.
JUST_LAUNCHED = LAUNCHED.replace(bounds=(0.0, 8.0))


def is_due(seen: Snapshot) -> bool:
    """Whether a window has passed since something was learned."""
    note = seen.memory.get("margin")
    return note is None or seen.now - note[1] >= seen.stats.seconds


def margin(seen: Snapshot, rule: Rule) -> float:
    """Deviations more than usual, as learned so far."""
    low, high = rule.bounds
    return min(max(low, _note(seen)[0]), high)


def missed(seen: Snapshot, percentile: float) -> float | None:
    """The share of late starts, if it is more than may be although the margin is at its most: then
    no margin meets the target at this cold start."""
    value, _, _, late, starts = _note(seen)
    if value < KEPT.bounds[1] - KEPT.step or starts < ENOUGH_STARTS:
        return None
    share = late / starts
    return share if share > 1.0 - percentile / 100.0 else None


def _note(seen: Snapshot) -> tuple[float, float, float, float, float]:
    """The margin, since when, the usual starts of a window, and the late and all starts lately."""
    value, at, usual, late, starts = (*(seen.memory.get("margin") or ()), *(0.0,) * 5)[:5]
    return value, at, usual, late, starts


def noted(seen: Snapshot, rule: Rule, *, wait_seconds: float, percentile: float) -> dict[str, Any]:
    """The note about lateness for the next decision."""
    before = seen.memory.get("margin")
    if before is None:
        return {"margin": [0.0, seen.now, 0.0, 0.0, 0.0]}
    if not is_due(seen):
        return {"margin": before}
    _, at, usual, late_before, starts_before = _note(seen)
    late, starts = counted((one for one in seen.history if one.at >= at), wait_seconds)
    usual = max(float(starts), FADE * usual)
    allowed = rule.aim * max(1e-4, 1.0 - percentile / 100.0)
    steps = (late / allowed - starts) / max(usual, ENOUGH_STARTS)
    low, high = rule.bounds
    learned = margin(seen, rule) + rule.step * min(steps, rule.most_steps)
    value = min(max(low, learned), high)
    lately = [RECENT * late_before + late, RECENT * starts_before + starts]
    return {"margin": [value, seen.now, usual, *lately]}


def counted(buckets: Iterable[StatsBucket], wait_seconds: float) -> tuple[float, int]:
    """How many started later than that, and how many in all. In the bin that the target falls into
    they are taken to be spread evenly."""
    edge = histogram.bin_of(wait_seconds)
    beyond = histogram.BINS_AN_OCTAVE * math.log2(histogram.edge_of(edge) / wait_seconds)
    share = min(max(0.0, beyond), 1.0)
    late, starts = 0.0, 0
    for bucket in buckets:
        for number, n in bucket.waits:
            starts += n
            late += n if number > edge else n * share if number == edge else 0.0
    return late, starts
