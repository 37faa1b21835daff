"""What one pool did, counted in buckets: 10 seconds wide, and 15 minutes once they are old."""

from __future__ import annotations

from sprat.core import histogram, model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Bucket = dict[tuple[str, int], list[float]]  # (kind, bin) -> n, total, squares

FINE_SECONDS = 10
COARSE_SECONDS = 900
FINE_FOR_SECONDS = 2 * 3600.0
KEPT_FOR_SECONDS = 35 * 86400.0


class Ledger:
    def __init__(self) -> None:
        self._buckets: dict[tuple[int, int], Bucket] = {}  # by begin and width
        self._kept: Bucket = {}  # what the dropped buckets had

    def count(self, now: float, kind: str, seconds: float = 0.0) -> None:
        at = int(now // FINE_SECONDS) * FINE_SECONDS
        seconds = max(0.0, seconds)
        _add(
            self._buckets.setdefault((at, FINE_SECONDS), {}),
            (kind, histogram.bin_of(seconds)),
            [1, seconds, seconds * seconds],
        )

    def tidy(self, now: float) -> None:
        """Roll old buckets up into wide ones, and drop the very old."""
        for at, width in list(self._buckets):
            wide = at // COARSE_SECONDS * COARSE_SECONDS
            if at + width <= now - KEPT_FOR_SECONDS:
                for name, sums in self._buckets.pop((at, width)).items():
                    _add(self._kept, name, sums)
            elif width == FINE_SECONDS and wide + COARSE_SECONDS <= now - FINE_FOR_SECONDS:
                into = self._buckets.setdefault((wide, COARSE_SECONDS), {})
                for name, sums in self._buckets.pop((at, width)).items():
                    _add(into, name, sums)

    def stats(self, now: float, seconds: float) -> model.Stats:
        return histogram.summarise(
            seconds,
            (row for _, _, bucket in self._since(now - seconds) for row in _rows(bucket)),
        )

    def history(self, now: float, seconds: float) -> list[model.StatsBucket]:
        return histogram.history(
            (at, width, row)
            for at, width, bucket in self._since(now - seconds)
            for row in _rows(bucket)
        )

    def rows(self) -> list[histogram.Row]:
        """All that was ever counted."""
        return [row for part in (self._kept, *self._buckets.values()) for row in _rows(part)]

    def _since(self, moment: float) -> Iterator[tuple[int, int, Bucket]]:
        for (at, width), bucket in sorted(self._buckets.items()):
            if at + width > moment:
                yield at, width, bucket


def _add(bucket: Bucket, name: tuple[str, int], sums: list[float]) -> None:
    before = bucket.get(name, [0, 0.0, 0.0])
    bucket[name] = [a + b for a, b in zip(before, sums, strict=True)]


def _rows(bucket: Bucket) -> Iterator[histogram.Row]:
    for (kind, number), (n, total, squares) in bucket.items():
        yield kind, number, int(n), total, squares
