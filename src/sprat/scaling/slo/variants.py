"""The ways of sizing that shadow_fleets.py compares, and the one that is tried first.

The notes of memory.py have one entry for each memory and for each way: with another table, notes
that were made before are forgotten.
"""

from __future__ import annotations

from sprat.core.record import Record

MEMORIES = (1.5, 3.0, 8.0, 24.0)  # cold starts over which a load is remembered
CALM = 4.0  # cold starts of patience


class Variant(Record):
    """How a fleet is sized."""

    memory: int  # how long a load is remembered: a place in MEMORIES
    patience: float  # cold starts until what is late is made up for; 0: as soon as can be

    @property
    def is_calm(self) -> bool:
        """Whether what came in the last moments is taken for a burst that is over soon."""
        return self.patience >= CALM


# For each memory. Who forgets a burst before the next one cannot be calm.
PATIENCES = ((0.0, 1.0), *((0.0, 1.0, CALM),) * 3)
WAYS = tuple(
    Variant(memory=memory, patience=patience)
    for memory, patiences in enumerate(PATIENCES)
    for patience in patiences
)
USUAL = WAYS.index(Variant(memory=1, patience=0.0))  # the one that is tried first
