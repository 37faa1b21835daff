"""A pool's own history as a trace: what its store counted, spread out again. Deterministic.

A store keeps how many jobs came in each stretch of time and how long they ran in all, not each one.
So the arrivals of a stretch are put at equal distances into it, and the jobs get the stretch's mean
running time, scattered like a lognormal distribution with the spread that was measured.
"""

from __future__ import annotations

import math
from array import array

from sprat.errors import InvalidInput
from sprat.simulation.trace import Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sprat.model import StatsBucket

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples fill the unit interval evenly
MAX_SCV = 20.0  # a spread beyond that is a few outliers


def as_trace(name: str, history: Sequence[StatsBucket], *, scv: float) -> Trace:
    """The trace of a pool; `scv` is the squared coefficient of variation of its running times."""
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
    scatter = _scatter(len(arrivals), min(max(scv, 0.0), MAX_SCV))
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


def _scatter(n: int, scv: float) -> Iterator[float]:
    """Factors with a mean of about 1 and this spread."""
    from statistics import NormalDist

    variance = math.log1p(scv)
    sigma, normal = math.sqrt(variance), NormalDist()
    for place in range(1, n + 1):
        share = min(max((place * GOLDEN) % 1.0, 1e-6), 1.0 - 1e-6)
        yield math.exp(sigma * normal.inv_cdf(share) - variance / 2.0) if sigma else 1.0
