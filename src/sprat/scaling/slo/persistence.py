"""How much of the load that there is will still be there a cold start later. Pure.

A job that runs now runs on for a while; who comes during a cold start is somebody else. Of long
jobs most will still be there when a worker that is launched now comes, so the load at that moment
is best foretold by the load now; of short ones none will, and the average of a while is better than
the chance of a moment. What decides is the share of their work that jobs do after their first
cold start: so large a part of those at work will be there, if they come at random.
"""

from __future__ import annotations

from sprat.core import histogram
from sprat.scaling.slo import learned_margin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.core.model import Snapshot, StatsBucket
    from sprat.scaling.slo.memory import Memory

ENOUGH_JOBS = 1000  # the last ones, or a few more


def noted(seen: Snapshot, memory: Memory, cold_start: float) -> float:
    """The note for the next decisions. The history is read once in a while."""
    if not learned_margin.is_due(seen, memory):
        return memory.persistence
    return measured(seen.history, cold_start)


def measured(history: Sequence[StatsBucket], cold_start: float) -> float:
    """Of the seconds that the last jobs ran, the share that was after their first cold start."""
    jobs, work, beyond = 0, 0.0, 0.0
    for bucket in reversed(history):
        for number, n in bucket.runs:
            seconds = histogram.value_of(number)
            jobs += n
            work += n * seconds
            beyond += n * max(0.0, seconds - cold_start)
        if jobs >= ENOUGH_JOBS:
            break
    return round(beyond / work, 4) if work else 0.0
