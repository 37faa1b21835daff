"""A trace: when jobs arrived, in seconds from the first one, and how long each one ran."""

from __future__ import annotations

from collections.abc import Sequence

from sprat.core.record import Record


class Trace(Record):
    """Two columns of the same length, the arrivals in ascending order."""

    name: str
    arrivals: Sequence[float]
    services: Sequence[float]

    @property
    def jobs(self) -> int:
        return len(self.arrivals)

    @property
    def useful_seconds(self) -> float:
        return sum(self.services)

    @property
    def span_seconds(self) -> float:
        return self.arrivals[-1] if self.arrivals else 0.0
