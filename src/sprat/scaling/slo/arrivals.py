"""How many items come a second, and how many will before a worker launched now is active. Pure.

Two averages: one over a few cold starts, which is what is expected, and one over a fraction of a
cold start. When the quick one is above the other by more than chance makes it, the load has
changed, and the quick one is expected to go on.
"""

from __future__ import annotations

import math

from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.core.model import Snapshot

QUICK, STEADY = 0.2, 3.0  # cold starts, over which the rate is averaged
CHANCE = 4.0  # deviations that the quick rate is above the steady one by chance: it is often asked
BRIEF_SECONDS = 4.0  # the least in which something is counted


class Rates(Record):
    """Arrivals a second: as they are expected to go on, and without what may be but a burst."""

    expected: float = 0.0
    steady: float = 0.0


def rates(seen: Snapshot, cold_start: float) -> Rates:
    quick, steady = _averages(seen, cold_start)
    spread = math.sqrt(max(steady, 1.0 / cold_start) / (2.0 * QUICK * cold_start))
    is_rise = quick > steady + CHANCE * spread
    return Rates(expected=quick if is_rise else steady, steady=steady)


def noted(seen: Snapshot, cold_start: float) -> dict[str, Any]:
    """The note for the next decision: both rates, and what they are counted on from."""
    counts = seen.counts
    return {"arrivals": [*_averages(seen, cold_start), counts.total, _live(seen), seen.now]}


def is_brief(seen: Snapshot) -> bool:
    """Whether the last pass that counted was just before: pushes start passes in between. The
    oftener rates are taken, the oftener chance looks like a rise."""
    before = seen.memory.get("arrivals")
    return before is not None and 0.0 <= seen.now - before[-1] < BRIEF_SECONDS


def moved(seen: Snapshot) -> tuple[int, int, int]:
    """Since the last pass: how many items came, how many ended, and how many workers had work."""
    before = seen.memory.get("arrivals")
    if before is None:
        return 0, 0, 0
    _, _, total, live, _ = before
    # Finished items are deleted one day, so the total may shrink; what waits and runs may too.
    came = max(0, seen.counts.total - total, _live(seen) - live)
    return came, live + came - _live(seen), min(seen.active, live + came)


def offered(seen: Snapshot, service_mean: float) -> float | None:
    """How many workers that would keep busy which came since the last pass."""
    before = seen.memory.get("arrivals")
    passed = seen.now - before[-1] if before else 0.0
    return moved(seen)[0] / passed * service_mean if passed > 0.0 else None


def _averages(seen: Snapshot, cold_start: float) -> tuple[float, float]:
    before = seen.memory.get("arrivals")
    if before is None:
        return 0.0, 0.0
    quick, steady, _, _, at = before
    passed = seen.now - at
    if passed <= 0.0 or is_brief(seen):
        return quick, steady
    came = moved(seen)[0] / passed
    return (
        quick + _share(passed, QUICK * cold_start) * (came - quick),
        steady + _share(passed, STEADY * cold_start) * (came - steady),
    )


def _share(passed: float, horizon: float) -> float:
    return 1.0 - math.exp(-passed / horizon)


def _live(seen: Snapshot) -> int:
    return seen.counts.ready + seen.counts.claimed
