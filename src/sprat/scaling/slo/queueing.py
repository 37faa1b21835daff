"""Queueing arithmetic: who waits how long behind whom, and how many workers change that. Pure.

Time runs from now. A fleet's *reach* at a moment is how many items will have been started by then:
one by each worker that is free or arrives until then, and one more each time a job ends. Ends are
counted with caution: as many as are expected, less `z` deviations.
"""

from __future__ import annotations

import math

from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Service(Record):
    """How long jobs run: mean, and squared coefficient of variation (1: exponential), from how
    many jobs (0: it is a guess)."""

    mean: float
    scv: float = 1.0
    jobs: float = 0.0


class Backlog(Record):
    """The workers that there are: busy ones, free ones, and when each of those that start comes;
    and the variance of how many items come meanwhile."""

    busy: int = 0
    free: int = 0
    arrivals: Sequence[float] = ()
    noise: float = 0.0


# A heavy tail says little about when the next of many jobs ends: beyond this, variation is noise
# of the sample, and answering it with workers is waste.
MOST_SCV = 6.0


def reach(
    line: Backlog,
    service: Service,
    *,
    at: float,
    z: float,
    launched: int = 0,
    cold_start: float = 0.0,
) -> float:
    """How many waiting items the workers will have started at a moment, counted with caution; those
    among them who are launched now come after a cold start."""
    here = [moment for moment in line.arrivals if moment <= at]
    launched = launched if cold_start <= at else 0
    worked = (line.busy + line.free) * at + sum(at - moment for moment in here)
    worked += launched * (at - cold_start)
    ends = worked / service.mean if service.mean > 0.0 else math.inf
    if ends == math.inf:
        return ends
    spread = math.sqrt(ends * (1.0 + min(service.scv, MOST_SCV)) / 2.0 + line.noise)
    return line.free + len(here) + launched + max(0.0, ends - z * spread)


def launches(
    line: Backlog, service: Service, *, items: float, at: float, cold_start: float, z: float
) -> int:
    """How many workers to launch now so that so many items have started at a moment: at most one
    an item, and none that would come too late."""
    if at < cold_start or reach(line, service, at=at, z=z) >= items:
        return 0
    low, high = 0, math.ceil(items)
    while high - low > 1:
        middle = (low + high) // 2
        if reach(line, service, at=at, z=z, launched=middle, cold_start=cold_start) >= items:
            high = middle
        else:
            low = middle
    return high


def square_root_staffed(load: float, k: float, deviation: float | None = None) -> int:
    """A load and `k` deviations above: the rule of thumb for many workers. The deviation is the
    root of the load, unless more is known."""
    if load <= 0.0:
        return 0
    return math.ceil(load + k * (math.sqrt(load) if deviation is None else deviation) - 1e-9)
