"""A forecast, kept in the store for the next decisions. Pure.

The history is read once in a while (`learned_margin.is_due`); in between the note serves. For a
rise, workers are launched one cold start before it is due, and held for one after: to hold them
longer for work that does not come is dearer than to start them again.
"""

from __future__ import annotations

from sprat.core.record import Record
from sprat.scaling.slo import arrivals, learned_margin
from sprat.scaling.slo.estimates import ExpectedRise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from sprat.core.model import Snapshot
    from sprat.scaling.slo.memory import Memory

VERSION = 1  # of the JSON
NAME = "forecast"  # beside the notes of slo


class RiseNote(Record):
    """A load that is due at a moment, and in words what foretells it."""

    at: float
    load: float
    words: str


class ForecastNote(Record):
    slope: float = 0.0  # busy workers more, each second
    rises: Sequence[RiseNote] = ()

    def expected(self, now: float, cold_start: float) -> ExpectedRise:
        """What is foretold for the moment when a worker that is launched now is active."""
        more = self.slope * cold_start
        due = [rise for rise in self.rises if abs(rise.at - now) <= cold_start]
        if not due:
            return ExpectedRise(more=more)
        rise = max(due, key=lambda rise: rise.load)
        return ExpectedRise(more=more, load=rise.load, season=rise.words)


def noted(seen: Snapshot, memory: Memory, before: ForecastNote) -> ForecastNote:
    """The note for the next decisions. What is uncertain about a rise is not paid in advance."""
    if not learned_margin.is_due(seen, memory) or arrivals.is_brief(seen, memory):
        return before
    from sprat.scaling.predictive.forecast import forecast

    made = forecast(seen.history, seen.now)
    rises = (
        RiseNote(at=rise.at, load=rise.load - rise.spread, words=rise.words())
        for rise in made.rises
        if rise.load > rise.spread
    )
    return ForecastNote(slope=made.slope, rises=tuple(rises))


def read(document: Mapping[str, Any]) -> ForecastNote:
    """The forecast of an earlier decision; none, if it is of another version or damaged."""
    try:
        note = document[NAME]
        if note["version"] != VERSION:
            return ForecastNote()
        rises = (
            RiseNote(at=float(rise["at"]), load=float(rise["load"]), words=str(rise["words"]))
            for rise in note["rises"]
        )
        return ForecastNote(slope=float(note["slope"]), rises=tuple(rises))
    except (KeyError, TypeError, ValueError):
        return ForecastNote()


def write(note: ForecastNote) -> dict[str, Any]:
    """The note as JSON: empty, if nothing is foretold."""
    if note == ForecastNote():
        return {}
    rises = [rise.as_dict() for rise in note.rises]
    return {NAME: {"version": VERSION, "slope": note.slope, "rises": rises}}
