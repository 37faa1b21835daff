"""What is due by the time that a worker launched now is active: forecasts, kept as notes. Pure.

The history is read once in a while (`learned_margin.is_due`); in between the notes serve. For a
rise, workers are launched one cold start before it is due, and held for one after: to hold them
longer for work that does not come is dearer than to start them again.
"""

from __future__ import annotations

from sprat.scaling.slo import arrivals, learned_margin
from sprat.scaling.slo.estimates import ExpectedRise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.core.model import Snapshot


def expected(seen: Snapshot, cold_start: float) -> ExpectedRise:
    """What the notes foretell for the moment when a worker that is launched now is active."""
    slope, rises = seen.memory.get("ahead") or (0.0, ())
    more = slope * cold_start
    for at, load, words in sorted(rises, key=lambda rise: -rise[1]):
        if at - cold_start <= seen.now < at + cold_start:
            return ExpectedRise(more=more, load=load, season=words)
    return ExpectedRise(more=more)


def noted(seen: Snapshot) -> dict[str, Any]:
    """The note for the next decisions. What is uncertain about a rise is not paid in advance."""
    if not learned_margin.is_due(seen) or arrivals.is_brief(seen):
        return {"ahead": seen.memory["ahead"]} if "ahead" in seen.memory else {}
    from sprat.scaling.predictive.forecast import forecast

    made = forecast(seen.history, seen.now)
    rises = [
        [rise.at, rise.load - rise.spread, rise.words()]
        for rise in made.rises
        if rise.load > rise.spread
    ]
    return {"ahead": [made.slope, rises]} if made.slope or rises else {}
