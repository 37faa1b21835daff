"""How many items come a second, and how many will before a worker launched now is active. Pure.

Two averages: one over a few cold starts, which is what is expected, and one over a fraction of a
cold start. When the quick one is above the other by more than chance makes it, the load has
changed, and the quick one is expected to go on.
"""

from __future__ import annotations

import math

from sprat.core.record import Record
from sprat.scaling.slo.memory import ArrivalCounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.model import Snapshot
    from sprat.scaling.slo.memory import Memory

QUICK, STEADY = 0.2, 3.0  # cold starts, over which the rate is averaged
CHANCE = 4.0  # deviations that the quick rate is above the steady one by chance: it is often asked
BRIEF_SECONDS = 4.0  # the least in which something is counted


class Rates(Record):
    """Arrivals a second: as they are expected to go on, and without what may be but a burst."""

    expected: float = 0.0
    steady: float = 0.0


def rates(seen: Snapshot, memory: Memory, cold_start: float) -> Rates:
    quick, steady = _averages(seen, memory, cold_start)
    spread = math.sqrt(max(steady, 1.0 / cold_start) / (2.0 * QUICK * cold_start))
    is_rise = quick > steady + CHANCE * spread
    return Rates(expected=quick if is_rise else steady, steady=steady)


def noted(seen: Snapshot, memory: Memory, cold_start: float) -> ArrivalCounts:
    """The note for the next decision: both rates, and what they are counted on from."""
    quick, steady = _averages(seen, memory, cold_start)
    return ArrivalCounts(
        quick=quick, steady=steady, total=seen.counts.total, live=_live(seen), at=seen.now
    )


def is_brief(seen: Snapshot, memory: Memory) -> bool:
    """Whether the last pass that counted was just before: pushes start passes in between. The
    oftener rates are taken, the oftener chance looks like a rise."""
    before = memory.loads
    return before is not None and 0.0 <= seen.now - before.at < BRIEF_SECONDS


def moved(seen: Snapshot, before: ArrivalCounts | None) -> tuple[int, int, int]:
    """Since the last pass: how many items came, how many ended, and how many workers had work."""
    if before is None:
        return 0, 0, 0
    # Finished items are deleted one day, so the total may shrink; what waits and runs may too.
    came = max(0, seen.counts.total - before.total, _live(seen) - before.live)
    return came, before.live + came - _live(seen), min(seen.active, before.live + came)


def offered(seen: Snapshot, before: ArrivalCounts | None, service_mean: float) -> float | None:
    """How many workers that would keep busy which came since the last pass."""
    passed = seen.now - before.at if before else 0.0
    return moved(seen, before)[0] / passed * service_mean if passed > 0.0 else None


def _averages(seen: Snapshot, memory: Memory, cold_start: float) -> tuple[float, float]:
    before = memory.arrivals
    if before is None:
        return 0.0, 0.0
    passed = seen.now - before.at
    if passed <= 0.0 or is_brief(seen, memory):
        return before.quick, before.steady
    came = moved(seen, before)[0] / passed
    return (
        before.quick + _share(passed, QUICK * cold_start) * (came - before.quick),
        before.steady + _share(passed, STEADY * cold_start) * (came - before.steady),
    )


def _share(passed: float, horizon: float) -> float:
    return 1.0 - math.exp(-passed / horizon)


def _live(seen: Snapshot) -> int:
    return seen.counts.ready + seen.counts.claimed
