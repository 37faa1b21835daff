"""The predictive policy: the slo policy, with workers ready for a rise that the history foretells.

It differs from slo only where the wait target is shorter than a cold start: there a worker that is
launched when work waits comes too late, and one that is launched one cold start before a rise does
not. Options, targets and reasons are those of slo.
"""

from __future__ import annotations

from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.scaling.predictive import forecast_note
from sprat.scaling.slo import policy as slo
from sprat.scaling.slo.memory import read
from sprat.scaling.slo.policy import (
    CHECKS,
    Options,
    check,
    leaves_when_idle,
    look_again_in,
    wants_history,
)

__all__ = [
    "CHECKS",
    "NAME",
    "Options",
    "check",
    "decide",
    "is_needed",
    "leaves_when_idle",
    "look_again_in",
    "wants_history",
]

NAME = "predictive"
REMEMBERS = True
HISTORY_SECONDS = 15 * 86400.0  # two weeks, to see a week repeat itself, and the one underway


def decide(seen: Snapshot, settings: PoolSettings) -> Decision:
    own = Options(**settings.policy_options)
    memory = read(seen.memory)
    cold_start = slo.cold_start(seen, memory, settings, own)
    if not slo.is_behind(own, cold_start):
        return slo.decide(seen, settings).replace(policy=NAME)
    before = forecast_note.read(seen.memory)
    made = slo.decide(seen, settings, before.expected(seen.now, cold_start))
    note = forecast_note.write(forecast_note.noted(seen, memory, before))
    return made.replace(policy=NAME, memory={**made.memory, **note})


def is_needed(seen: Snapshot, settings: PoolSettings) -> bool:
    """Whether a worker that has been idle for a while has to stay all the same."""
    own = Options(**settings.policy_options)
    cold_start = slo.cold_start(seen, read(seen.memory), settings, own)
    before = forecast_note.read(seen.memory)
    return slo.is_needed(seen, settings, before.expected(seen.now, cold_start))
