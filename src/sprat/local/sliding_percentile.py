"""The durations of the last minute: a percentile that forgets, in bounded memory.

Not safe for several threads at once: hold a lock around an object that threads share.
"""

from __future__ import annotations

from sprat.core import histogram

BUCKETS = 6


class SlidingPercentile:
    """Durations counted in a few buckets of time; the oldest bucket goes as a whole."""

    def __init__(self, window_seconds: float = 60.0) -> None:
        self._width = window_seconds / BUCKETS
        self._buckets: dict[int, dict[int, int]] = {}

    def add(self, seconds: float, now: float) -> None:
        bucket = self._buckets.setdefault(self._sweep(now), {})
        number = histogram.bin_of(seconds)
        bucket[number] = bucket.get(number, 0) + 1

    def percentile(self, q: float, now: float) -> float:
        """In seconds; 0 when there was nothing lately."""
        self._sweep(now)
        bins: dict[int, int] = {}
        for bucket in self._buckets.values():
            for number, n in bucket.items():
                bins[number] = bins.get(number, 0) + n
        return histogram.percentile(bins, q)

    def _sweep(self, now: float) -> int:
        current = int(now / self._width)
        for old in [number for number in self._buckets if number <= current - BUCKETS]:
            del self._buckets[old]
        return current
