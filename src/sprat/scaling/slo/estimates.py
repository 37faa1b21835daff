"""What a pool is like, estimated from what was seen: how long jobs run, how much there is. Pure.

Few samples and heavy tails are the rule. So the last minutes are added to what was noted before,
which fades, and before anything was measured the guess is on the safe side.
"""

from __future__ import annotations

import math

from sprat.core.record import Record
from sprat.scaling.slo import learned_margin
from sprat.scaling.slo.memory import LoadAverages, RunTimes
from sprat.scaling.slo.queueing import Service
from sprat.scaling.slo.variants import MEMORIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.core.model import Snapshot, Stats
    from sprat.scaling.slo.memory import ForecastNote, Memory

    Moments = tuple[float, float, float]  # how many jobs, their seconds, their squared seconds

KEPT_JOBS = 200.0  # so many count of those before the last minutes: a mean of them is good to 10 %
# The jobs of the last minutes count as no more than this many. They are often one batch of equal
# jobs, which is one sample of what jobs take, however many it has: with its full weight it would
# replace all that was learned before, and the next batch of longer jobs would get too few workers.
WINDOW_JOBS = 20.0

FAST = 0.1  # cold starts, over which the load is averaged to follow a burst


# -- service ------------------------------------------------------------------------------------


def service(seen: Snapshot, memory: Memory, *, guess_seconds: float) -> Service:
    """Mean and variation of the jobs. One imaginary job of the guessed length is among them, which
    counts for less and less."""
    kept = _kept(memory)
    n, total, squares = _added(kept, _window(seen.stats))
    own = total / n if n else 0.0
    scv = max(0.0, squares / n / (own * own) - 1.0) if own * own else 1.0
    jobs = kept[0] + seen.stats.finished + seen.stats.failed
    doubt = min(1.0, WINDOW_JOBS / jobs) if jobs else 1.0
    return Service(mean=(own * jobs + doubt * guess_seconds) / (jobs + doubt), scv=scv, jobs=jobs)


def noted_service(seen: Snapshot, memory: Memory) -> RunTimes | None:
    """The note about service for the next decision: once a window, what it saw is added."""
    before = memory.runs
    window = _window(seen.stats)
    if not window[0] or (before and seen.now - before.at < seen.stats.seconds):
        return before
    kept = _kept(memory)
    fade = min(1.0, KEPT_JOBS / kept[0]) if kept[0] else 1.0
    jobs, total, squares = _added((kept[0] * fade, kept[1] * fade, kept[2] * fade), window)
    return RunTimes(jobs=jobs, total=total, squares=squares, at=seen.now)


def _kept(memory: Memory) -> Moments:
    runs = memory.runs
    return (runs.jobs, runs.total, runs.squares) if runs else (0.0, 0.0, 0.0)


def _window(stats: Stats) -> Moments:
    n = min(WINDOW_JOBS, float(stats.finished + stats.failed))
    return n, n * stats.run_mean, n * stats.run_mean * stats.run_mean * (1.0 + stats.run_scv)


def _added(one: Moments, other: Moments) -> Moments:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


# -- load ---------------------------------------------------------------------------------------


class ExpectedRise(Record):
    """What a forecast adds: `more` than the load that there is, by its trend; or, by its season, a
    `load` in all."""

    more: float = 0.0
    load: float = 0.0
    season: str = ""

    def words(self) -> str:
        """For the end of a reason."""
        text = f" and rising by {self.more:.1f}" if self.more >= 0.5 else ""
        return f"{text}, {self.load:.1f} is due: {self.season}" if self.load else text


def expected_rise(note: ForecastNote | None, now: float, cold_start: float) -> ExpectedRise:
    """What is foretold for the moment when a worker that is launched now is active."""
    if note is None:
        return ExpectedRise()
    more = note.slope * cold_start
    due = [rise for rise in note.rises if rise.at - cold_start <= now < rise.at + cold_start]
    if not due:
        return ExpectedRise(more=more)
    rise = max(due, key=lambda rise: rise.load)
    return ExpectedRise(more=more, load=rise.load, season=rise.words)


class Loads(Record):
    """How many workers have something to do: one average that follows a burst at once, and for each
    memory one that remembers it."""

    fast: float
    slow: Sequence[float]
    lasting: float = 0.0  # the share that will still be there after a cold start (persistence.py)

    def expected(self, memory: int, chance: float | None) -> float:
        """What is there now, as far as it lasts, and for the rest what is remembered. If that is
        less than what is there now, less so many deviations of chance, the latter. None: a burst is
        never more than chance, and what is remembered counts alone."""
        if chance is None:
            return self.slow[memory]
        load = self.lasting * self.fast + (1.0 - self.lasting) * self.slow[memory]
        return max(load, self.fast - chance * self.deviation(memory, load, chance))

    def deviation(self, memory: int, load: float, chance: float | None) -> float:
        """Of the load, a cold start ahead, if so much is expected. Of those who are there now some
        will be gone, nobody knows how many, and others will have come: as many as usual, by chance.
        If none lasts, or that does not count, it is the root of the load."""
        if chance is None:
            return math.sqrt(load)
        gone = 1.0 - self.lasting
        return math.sqrt(gone * max(load, self.lasting * self.fast + self.slow[memory]))


def loads(
    seen: Snapshot,
    memory: Memory,
    *,
    service_mean: float,
    wait_seconds: float,
    cold_start_seconds: float,
    offered: float | None,
) -> Loads:
    """An item that waits for a short job is no load by itself, for a worker that is there takes
    many of them in time. So for the load of the moment it counts as much as a job takes of the
    target. What is remembered is there to have fewer wait next time: there an item counts as a
    worker where a job takes half of the target. `offered` is the load by what came lately, if that
    is to count too. What was not seen is not remembered: memories begin short."""
    part = service_mean / wait_seconds
    now = seen.counts.claimed + seen.claimable * min(1.0, part)
    to_keep = seen.counts.claimed + seen.claimable * min(1.0, 2.0 * part) ** 2
    before = memory.loads or LoadAverages(fast=now, slow=(to_keep,) * len(MEMORIES), at=seen.now)
    passed = max(0.0, seen.now - before.at)
    longest = max(cold_start_seconds, learned_margin.learned_for(seen, memory))
    horizons = (min(starts * cold_start_seconds, longest) for starts in MEMORIES)
    return Loads(
        fast=_smoothed(before.fast, now, passed, FAST * cold_start_seconds),
        slow=[
            _smoothed(load, _mixed(to_keep, offered, service_mean / horizon), passed, horizon)
            for load, horizon in zip(before.slow, horizons, strict=True)
        ],
        lasting=memory.persistence,
    )


def kept_loads(memory: Memory) -> Loads | None:
    """As they were noted."""
    note = memory.loads
    return Loads(fast=note.fast, slow=note.slow, lasting=memory.persistence) if note else None


def _mixed(now: float, offered: float | None, job_share: float) -> float:
    """Both by how little chance moves their averages over a horizon of which a job takes that
    share: for short jobs what came tells more, for long ones what runs."""
    if offered is None:
        return now
    share = 2.0 / (3.0 + 2.0 * job_share)
    return (1.0 - share) * now + share * offered


def _smoothed(before: float, now: float, passed: float, horizon: float) -> float:
    share = 1.0 - math.exp(-passed / horizon) if horizon > 0.0 else 1.0
    return before + share * (now - before)
