"""What the load will be when a worker that is launched now is active, from a pool's own history.

Two things are looked for. A *trend*: the load of the last hour rises steadily. A *season*: the load
repeats itself after an hour, a day, a week; whether it does is judged by how well the past would
have been foretold that way, against the better of "as just now" and "as on average". Whoever finds
neither expects nothing. Pure.
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import median

from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.core.model import StatsBucket

SLOT = 900.0  # as wide as the buckets that stores keep for long
HOUR = 3600.0
PERIODS = (*(n * HOUR for n in (1, 2, 3, 4, 6, 8, 12)), 86400.0, 7 * 86400.0)
CYCLES = 3  # a season's last so many rounds are averaged
FEWEST_SLOTS = 8  # foretold before a season is believed in
SKILL = 0.5  # ... with at most half of the squared error that expecting no season makes
RISE = 1.25  # times what comes before: less is not worth being early for
AHEAD = 2  # slots that are foretold: the history is read more often than that
STEP_SECONDS, STEPS = 300.0, 12  # of the trend: its last hour


class Slot(Record):
    """A stretch of SLOT seconds for which a rise is expected."""

    at: float
    load: float  # busy workers
    spread: float  # the usual error
    before: float  # what is expected of the slot before
    period: float  # it was so these seconds ago

    def words(self) -> str:
        times = f"{self.load / self.before:.1f}x" if self.before > 0.0 else f"{self.load:.1f}"
        return f"{_ago(self.period)} it rose to {times}"


class Forecast(Record):
    slope: float = 0.0  # busy workers more, each second
    rises: Sequence[Slot] = ()


def forecast(history: Sequence[StatsBucket], now: float) -> Forecast:
    return Forecast(slope=trend(history, now), rises=rises(history, now))


def loads(history: Sequence[StatsBucket], now: float, width: float) -> list[float]:
    """Busy workers that the arrivals of each complete stretch came to, up to now, oldest first."""
    ended = sum(one.finished + one.failed for one in history)
    if not ended:
        return []
    mean = sum(one.run_seconds for one in history) / ended
    first, end = math.floor(history[0].at / width), math.floor(now / width)
    found = [0.0] * max(0, end - first)
    for one in history:
        place = math.floor(one.at / width) - first
        if 0 <= place < len(found):
            found[place] += one.arrivals * mean / width
    return found


def trend(history: Sequence[StatsBucket], now: float) -> float:
    """How much the load rises a second: the median of the slopes between all pairs (Theil and Sen),
    if three quarters of them rise. A falling load needs no foresight."""
    recent = [one for one in history if one.at >= now - STEPS * STEP_SECONDS - STEP_SECONDS]
    points = loads(recent, now, STEP_SECONDS)[-STEPS:] if recent else []
    if len(points) < STEPS:
        return 0.0
    slopes = [
        (later - earlier) / ((j - i) * STEP_SECONDS)
        for i, earlier in enumerate(points)
        for j, later in enumerate(points[i + 1 :], i + 1)
    ]
    rising = sum(slope > 0.0 for slope in slopes)
    return max(0.0, median(slopes)) if rising >= 0.75 * len(slopes) else 0.0


def rises(history: Sequence[StatsBucket], now: float) -> tuple[Slot, ...]:
    """The next slots that have more than those before, by the season that foretells best."""
    past = loads(history, now, SLOT) if history else []
    share, error, period = min((*_fit(past, _lag(period)), period) for period in PERIODS)
    if share > 1.0 - SKILL:
        return ()
    known = [foretold(past, len(past) + n, _lag(period)) for n in range(AHEAD + 1)]
    start, spread = math.floor(now / SLOT), math.sqrt(error)
    return tuple(
        Slot(at=(start + n) * SLOT, load=load, spread=spread, before=before, period=period)
        for n, (before, load) in enumerate(pairwise(known), 1)
        if load > RISE * before
    )


def foretold(past: Sequence[float], place: int, lag: int) -> float:
    """The mean of what was at the same place of the last rounds."""
    places = range(place - lag, max(-1, place - CYCLES * lag - 1), -lag)
    seen = [past[one] for one in places if one < len(past)]
    return sum(seen) / len(seen) if seen else 0.0


def _fit(past: Sequence[float], lag: int) -> tuple[float, float]:
    """The mean squared error of a season over its last round: as a share of the error of the better
    of "as just now" and "as on average", and as it is. Before the second round: none."""
    n = max(lag, FEWEST_SLOTS)
    places = range(len(past) - n, len(past))
    if len(past) < n + lag:
        return math.inf, 0.0
    mean = sum(past) / len(past)
    error = sum((past[i] - foretold(past, i, lag)) ** 2 for i in places) / n
    as_now = sum((past[i] - past[i - 1]) ** 2 for i in places) / n
    as_ever = sum((past[i] - mean) ** 2 for i in places) / n
    without = min(as_now, as_ever)
    return (error / without, error) if without > 0.0 else (math.inf, 0.0)


def _lag(period: float) -> int:
    return round(period / SLOT)


def _ago(period: float) -> str:
    if period >= 7 * 86400.0:
        return "a week before"
    return "the day before" if period >= 86400.0 else f"{period / HOUR:.0f} h before"
