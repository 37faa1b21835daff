"""A pool's own history as a trace: what its store counted, spread out again. Deterministic.

A store keeps how many jobs came in each stretch of time and how long they ran in all, not each one.
So the arrivals of a stretch are put at equal distances into it, and the jobs get the stretch's mean
running time, scattered as the histogram of all running times says.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence

from sprat.core import histogram
from sprat.core.errors import InvalidInput
from sprat.core.model import StatsBucket
from sprat.simulation.trace import Trace

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples fill the unit interval evenly
QUANTILES = 1000


def as_trace(name: str, history: Sequence[StatsBucket]) -> Trace:
    """The trace of a pool, from its first arrival on."""
    arrivals, means = array("d"), array("d")
    overall = _mean(history)
    for bucket in sorted(history, key=lambda one: one.at):
        mean = _mean([bucket]) or overall
        for at in _spread(bucket):
            arrivals.append(at)
            means.append(mean)
    if not arrivals:
        raise InvalidInput(f"the pool {name} has no recorded history: nothing arrived in that time")
    begin = arrivals[0]
    ordered = sorted(arrivals)  # a wide stretch may overlap the narrow ones that follow it
    scatter = _scatter(len(arrivals), history)
    return Trace(
        name=name,
        arrivals=array("d", (at - begin for at in ordered)),
        services=array("d", (mean * f for mean, f in zip(means, scatter, strict=True))),
    )


def _mean(history: Sequence[StatsBucket]) -> float:
    ran = sum(one.finished + one.failed for one in history)
    return sum(one.run_seconds for one in history) / ran if ran else 0.0


def _spread(bucket: StatsBucket) -> Iterator[float]:
    for n in range(bucket.arrivals):
        yield bucket.at + bucket.seconds * (n + 0.5) / bucket.arrivals


def _scatter(n: int, history: Sequence[StatsBucket]) -> Iterator[float]:
    """Factors with a mean of about 1, spread as running times were."""
    values = _quantiles(history)
    mean = sum(values) / len(values)
    for place in range(1, n + 1):
        yield values[int((place * GOLDEN) % 1.0 * len(values))] / mean


def _quantiles(history: Sequence[StatsBucket]) -> list[float]:
    """Running times from the shortest to the longest, at equal shares of the jobs."""
    bins: dict[int, int] = {}
    for bucket in history:
        for number, n in bucket.runs:
            bins[number] = bins.get(number, 0) + n
    if not bins:
        return [1.0]
    return [histogram.percentile(bins, (n + 0.5) / QUANTILES) for n in range(QUANTILES)]
