"""The predictive policy: the slo policy, with workers ready for a rise that the history foretells.

It differs from slo only where the wait target is shorter than a cold start: there a worker that is
launched when work waits comes too late, and one that is launched one cold start before a rise does
not. The forecast is kept as a note for the next decisions, and slo counts it in. For a rise,
workers are held for one cold start after it is due: to hold them longer for work that does not come
is dearer than to start them again.
"""

from __future__ import annotations

from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.scaling.slo import arrivals, learned_margin
from sprat.scaling.slo import policy as slo
from sprat.scaling.slo.memory import ForecastNote, Memory, RiseNote, read, write

NAME = "predictive"
REMEMBERS = True
HISTORY_SECONDS = 15 * 86400.0  # two weeks, to see a week repeat itself, and the one underway

Options, FIELDS, check = slo.Options, slo.FIELDS, slo.check
is_needed, leaves_when_idle = slo.is_needed, slo.leaves_when_idle
look_again_in, wants_history = slo.look_again_in, slo.wants_history


def decide(seen: Snapshot, settings: PoolSettings) -> Decision:
    made = slo.decide(seen, settings)
    if "shadows" not in made.memory:  # launches are in time
        return made.replace(policy=NAME)
    note = write(Memory(forecast=noted(seen, read(seen.memory))))
    return made.replace(policy=NAME, memory={**made.memory, **note})


def noted(seen: Snapshot, before: Memory) -> ForecastNote | None:
    """The note for the next decisions. The history is read once in a while; what is uncertain about
    a rise is not paid in advance."""
    if not learned_margin.is_due(seen, before) or arrivals.is_brief(seen, before):
        return before.forecast
    from sprat.scaling.predictive.forecast import forecast

    made = forecast(seen.history, seen.now)
    rises = (
        RiseNote(at=rise.at, load=rise.load - rise.spread, words=rise.words())
        for rise in made.rises
        if rise.load > rise.spread
    )
    note = ForecastNote(slope=made.slope, rises=tuple(rises))
    return None if note == ForecastNote() else note
