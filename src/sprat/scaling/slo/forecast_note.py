"""What is due by the time that a worker launched now is active: forecasts, kept as notes. Pure.

The history is read once in a while (`lateness.is_due`); in between the notes serve. For a rise,
workers are launched one cold start before it is due, and held for one after: to hold them longer
for work that does not come is dearer than to start them again.
"""

from __future__ import annotations

from sprat.core.record import Record
from sprat.scaling.slo import learned_margin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.core.model import Snapshot


class Due(Record):
    """`more` than the load that there is, by its trend; or, by its season, a `load` in all."""

    more: float = 0.0
    load: float = 0.0
    season: str = ""

    def words(self) -> str:
        """For the end of a reason."""
        said = f" and rising by {self.more:.1f}" if self.more >= 0.5 else ""
        return f"{said}, {self.load:.1f} is due: {self.season}" if self.load else said


def due(seen: Snapshot, cold_start: float) -> Due:
    slope, rises = seen.memory.get("ahead") or (0.0, ())
    more = slope * cold_start
    for at, load, words in sorted(rises, key=lambda rise: -rise[1]):
        if at - cold_start <= seen.now < at + cold_start:
            return Due(more=more, load=load, season=words)
    return Due(more=more)


def noted(seen: Snapshot) -> dict[str, Any]:
    """The note for the next decisions. What is uncertain about a rise is not paid in advance."""
    if not learned_margin.is_due(seen):
        return {"ahead": seen.memory["ahead"]} if "ahead" in seen.memory else {}
    from sprat.scaling.slo.forecast import forecast

    made = forecast(seen.history, seen.now)
    rises = [
        [rise.at, rise.load - rise.spread, rise.words()]
        for rise in made.rises
        if rise.load > rise.spread
    ]
    return {"ahead": [made.slope, rises]} if made.slope or rises else {}
