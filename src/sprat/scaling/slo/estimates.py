"""What a pool is like, estimated from what was seen: how long jobs run, how much there is. Pure.

Few samples and heavy tails are the rule. So the last minutes are added to what was noted before,
which fades, and before anything was measured the guess is on the safe side.
"""

from __future__ import annotations

import math

from sprat.core.record import Record
from sprat.scaling.slo import learned_margin
from sprat.scaling.slo import persistence as lasting
from sprat.scaling.slo.queueing import Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from sprat.core.model import Snapshot, Stats

    Moments = tuple[float, float, float]  # how many jobs, their seconds, their squared seconds

KEPT_JOBS = 200.0  # so many count of those before the last minutes: a mean of them is good to 10 %
# The jobs of the last minutes count as no more than this many. They are often one batch of equal
# jobs, which is one sample of what jobs take, however many it has: with its full weight it would
# replace all that was learned before, and the next batch of longer jobs would get too few workers.
WINDOW_JOBS = 20.0

FAST = 0.1  # cold starts, over which the load is averaged to follow a burst
MEMORIES = (1.5, 3.0, 8.0, 24.0)  # ... and to remember it: shadow_fleets.py finds out for how long


# -- service ------------------------------------------------------------------------------------


def service(seen: Snapshot, *, guess_seconds: float) -> Service:
    """Mean and variation of the jobs. One imaginary job of the guessed length is among them, which
    counts for less and less."""
    kept = _kept(seen.memory)
    n, total, squares = _added(kept, _window(seen.stats))
    own = total / n if n else 0.0
    scv = max(0.0, squares / n / (own * own) - 1.0) if own * own else 1.0
    jobs = kept[0] + seen.stats.finished + seen.stats.failed
    doubt = min(1.0, WINDOW_JOBS / jobs) if jobs else 1.0
    return Service(mean=(own * jobs + doubt * guess_seconds) / (jobs + doubt), scv=scv, jobs=jobs)


def noted_service(seen: Snapshot) -> dict[str, Any]:
    """The note about service for the next decision: once a window, what it saw is added."""
    before = seen.memory.get("service")
    window = _window(seen.stats)
    if not window[0] or (before and seen.now - before[3] < seen.stats.seconds):
        return {"service": before} if before else {}
    n, total, squares = _kept(seen.memory)
    fade = min(1.0, KEPT_JOBS / n) if n else 1.0
    return {"service": [*_added((n * fade, total * fade, squares * fade), window), seen.now]}


def _kept(memory: Mapping[str, Any]) -> Moments:
    n, total, squares, _ = memory.get("service") or (0.0, 0.0, 0.0, 0.0)
    return n, total, squares


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
    fast, slow, at = seen.memory.get("loads") or (now, (to_keep,) * len(MEMORIES), seen.now)
    passed = max(0.0, seen.now - at)
    longest = max(cold_start_seconds, learned_margin.learned_for(seen))
    horizons = (min(memory * cold_start_seconds, longest) for memory in MEMORIES)
    return Loads(
        fast=_smoothed(fast, now, passed, FAST * cold_start_seconds),
        slow=[
            _smoothed(one, _mixed(to_keep, offered, service_mean / horizon), passed, horizon)
            for one, horizon in zip(slow, horizons, strict=True)
        ],
        lasting=lasting.share(seen),
    )


def kept_loads(seen: Snapshot) -> Loads | None:
    """As they were noted."""
    note = seen.memory.get("loads")
    return Loads(fast=note[0], slow=note[1], lasting=lasting.share(seen)) if note else None


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
