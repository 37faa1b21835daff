"""How much caution a target takes, learned from the share of late starts. Pure.

95 % in time means that 5 % may be late: while fewer are, the margin sinks; when more are, it grows.
Starts are counted, not windows, so that over the days the share comes out as it was stated. What
the margin is for depends on the target: one that is shorter than a cold start is met only by
workers that are kept, and each costs; a longer one by launching earlier, which costs little.
"""

from __future__ import annotations

import math

from sprat.core import histogram
from sprat.core.record import Record
from sprat.scaling.slo.memory import LearnedMargin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from sprat.core.model import Snapshot, StatsBucket
    from sprat.scaling.slo.memory import Memory

FADE = 0.98  # of the usual number of starts, a window: a busy day is forgotten in a day
ENOUGH_STARTS = 20.0  # of fewer, one late start is more than 5 %: they count for less
LONG_SECONDS = 7 * 86400.0  # what is said is of a week: then what was counted before fades
LONG_FADE = 0.998  # ... a window
ENOUGH_LATE = 10.0  # of fewer, nothing is said of a target
ENOUGH_SECONDS = 1800.0  # ... nor before: who begins is late


class Rule(Record):
    """How a margin is learned."""

    aim: float  # of the share that may be late: what is learned comes after what was late
    answer: float = 0.0  # how much more, or less, is aimed at for what was late before
    step: float  # deviations that a window of the usual size without a late start gives back
    slows: bool = False  # whether steps shrink with the time that it has been followed
    most_steps: float  # that one window adds: lateness comes in bursts, and one is no rule
    bounds: tuple[float, float]  # in deviations

    def moved(self, margin: float, steps: float) -> float:
        """The margin after so many steps."""
        return self.bounded(margin + self.step * min(steps, self.most_steps))

    def bounded(self, margin: float) -> float:
        low, high = self.bounds
        return min(max(low, margin), high)


AIMS = (0.3, 1.3)  # what is aimed at, at least and at most
BEFORE = 30.0  # usual windows that count as if they had been as aimed: an hour is no rule
# The longer something has been learned, the smaller the steps: late starts come in clusters, and a
# margin that follows each of them is dearer than one that stays, with as many late.
HALF_PACE_SECONDS, LEAST_PACE = 6 * 3600.0, 0.08
KEPT = Rule(aim=0.82, answer=4.0, step=0.25, slows=True, most_steps=4.0, bounds=(-1.25, 8.0))
# Where a launch is in time: late starts come in spells of other jobs, far between, so each counts
# for all that were in time meanwhile.
LAUNCHED = Rule(aim=0.6, answer=4.0, step=0.1, most_steps=20.0, bounds=(0.0, 3.0))
# ... and where it is so only just, workers are kept as a last resort.
JUST_LAUNCHED = LAUNCHED.replace(answer=2.0, slows=True, bounds=(0.0, 8.0))


def is_due(seen: Snapshot, memory: Memory) -> bool:
    """Whether a window has passed since something was learned."""
    note = memory.margin
    return note is None or seen.now - note.at >= seen.stats.seconds


def margin(memory: Memory, rule: Rule) -> float:
    """Deviations more than usual, as learned so far."""
    return rule.bounded(_note(memory).margin)


def missed(seen: Snapshot, memory: Memory, percentile: float) -> float | None:
    """The share of late starts in the last week or so, if it is more than may be. All that late
    starts have taught did not help then."""
    note = _note(memory)
    if not is_known(seen, memory) or note.late < ENOUGH_LATE or not note.starts:
        return None
    share = note.late / note.starts
    return share if share > allowed(percentile) else None


def aimed(seen: Snapshot, memory: Memory, rule: Rule, percentile: float) -> Rule:
    """The rule, with an aim that makes up for what was late in the last week or so (on loads that
    differ, one aim comes out as different shares), and steps by how long it has been followed, if
    they are to shrink."""
    note = _note(memory)
    if not rule.answer or not note.starts:
        return rule
    before = BEFORE * note.usual
    reached = (note.late / allowed(percentile) + rule.aim * before) / (note.starts + before)
    low, high = AIMS
    return rule.replace(
        aim=min(max(low, rule.aim + rule.answer * (rule.aim - reached)), high),
        step=rule.step * (pace(learned_for(seen, memory)) if rule.slows else 1.0),
    )


def pace(seconds: float) -> float:
    """Of the first steps, how large they are after so long."""
    return max(LEAST_PACE, 1.0 / (1.0 + seconds / HALF_PACE_SECONDS))


def is_known(seen: Snapshot, memory: Memory) -> bool:
    """Whether starts have been counted for long enough to say something."""
    return learned_for(seen, memory) >= ENOUGH_SECONDS


def learned_for(seen: Snapshot, memory: Memory) -> float:
    """Seconds since starts were first counted."""
    return seen.now - memory.margin.since if memory.margin else 0.0


def allowed(percentile: float) -> float:
    """The share that may be late."""
    return max(1e-4, 1.0 - percentile / 100.0)


def steps(rule: Rule, late: float, starts: float, usual: float, percentile: float) -> float:
    """How many steps up, or down, so many late starts are worth."""
    return (late / (rule.aim * allowed(percentile)) - starts) / max(usual, ENOUGH_STARTS)


def _note(memory: Memory) -> LearnedMargin:
    return memory.margin or LearnedMargin()


def noted(
    seen: Snapshot, memory: Memory, rule: Rule, *, wait_seconds: float, percentile: float
) -> LearnedMargin:
    """The note about lateness for the next decision."""
    before = memory.margin
    end = _ended(seen.now)
    if before is None:
        return LearnedMargin(at=end, since=seen.now)
    if not is_due(seen, memory):
        return before
    buckets = (bucket for bucket in seen.history if before.at <= bucket.at < end)
    late, starts = counted(buckets, wait_seconds)
    usual = max(float(starts), FADE * before.usual)
    rule = aimed(seen, memory, rule, percentile)
    fade = LONG_FADE if seen.now - before.since > LONG_SECONDS else 1.0
    return LearnedMargin(
        margin=rule.moved(margin(memory, rule), steps(rule, late, starts, usual, percentile)),
        at=end,
        usual=usual,
        late=fade * before.late + late,
        starts=fade * before.starts + starts,
        since=before.since,
    )


def _ended(now: float) -> float:
    """The end of the last bucket that nothing is added to any more (stores hold statistics back for
    a moment): each counts once, and whole."""
    return (now // histogram.FINE - 1) * histogram.FINE


def counted(buckets: Iterable[StatsBucket], wait_seconds: float) -> tuple[float, int]:
    """How many started later than that, and how many in all. Where a bin ends at the target that is
    exact; in a bin that the target falls into they are taken to be spread evenly."""
    edge = histogram.bin_of(wait_seconds)
    high, low = histogram.edge_of(edge), histogram.edge_of(edge - 1)
    share = math.log(high / wait_seconds) / math.log(high / low) if low < wait_seconds < high else 0
    late, starts = 0.0, 0
    for bucket in buckets:
        for number, n in bucket.waits:
            starts += n
            late += n if number > edge else n * share if number == edge else 0.0
    return late, starts
