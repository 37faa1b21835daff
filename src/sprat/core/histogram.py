"""Histograms of durations: about four bins an octave from a millisecond up. Pure.

Counting durations in bins makes statistics additive (two buckets add up to one) and small, at the
price of percentiles that are exact only to the width of a bin, a quarter at most. From a tenth of a
second to a day bins end at round durations, because those are what people state as a target: how
many jobs waited longer than 30 seconds is then known exactly.
"""

from __future__ import annotations

from bisect import bisect_left
from math import sqrt

from sprat.core import model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    Row = tuple[str, int, int, float, float]  # kind, bin, n, total seconds, total squared seconds

FINE = 10  # seconds of a bucket of statistics, until it is rolled up
SMALLEST_SECONDS = 0.001  # all that is not longer falls into bin 0
LAST_BIN = 200  # 36,000 years: keeps a nonsensical duration from being a nonsensical bin
GRAIN_SECONDS = 5e-7  # stores count microseconds: what is less above an edge is not above it
FIRST_ROUND = 27  # the bin that ends at the first of these
ROUND = (
    *(0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8),
    *(1.0, 1.2, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0),
    *(10.0, 12.0, 15.0, 17.5, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 60.0, 75.0, 90.0, 105.0),
    *(60.0 * n for n in (2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12, 15, 18, 20, 25, 30, 35, 40, 50)),
    *(3600.0 * n for n in (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20)),
    86400.0,
)

ARRIVE = "arrive"  # an item was pushed
WAIT = "wait"  # an item was claimed, after having been ready for this long
RUN = "run"  # a job ended in its worker's hands, whatever its outcome
DONE = "done"  # ... and it was completed
FAIL = "fail"  # ... or it failed, or took its worker with it


def edge_of(number: int) -> float:
    """The longest duration that falls into a bin."""
    place = number - FIRST_ROUND
    if 0 <= place < len(ROUND):
        return ROUND[place]
    return SMALLEST_SECONDS * float(2.0 ** (number / 4))


EDGES = tuple(edge_of(number) for number in range(LAST_BIN))


def bin_of(seconds: float) -> int:
    """The bin that a duration falls into; the upper edge of a bin belongs to it."""
    if not seconds > SMALLEST_SECONDS:  # this way round, not-a-number falls into bin 0 too
        return 0
    return bisect_left(EDGES, seconds - GRAIN_SECONDS)


def value_of(number: int) -> float:
    """The duration that stands for a bin: its geometric middle."""
    return sqrt(edge_of(number - 1) * edge_of(number))


def percentile(bins: Mapping[int, int], q: float) -> float:
    """The duration that the fraction q (0 to 1) of the counted ones does not exceed; 0 if none."""
    target = q * sum(bins.values())
    count = 0
    last = 0
    for number, n in sorted(bins.items()):
        if n <= 0:
            continue
        count += n
        last = number
        if count >= target:
            break
    return value_of(last) if count else 0.0


def summarise(seconds: float, rows: Iterable[Row]) -> model.Stats:
    """The statistics of `seconds` of history, from its rows in any order."""
    counts: dict[str, int] = {}
    totals: dict[str, float] = {}
    squares: dict[str, float] = {}
    bins: dict[str, dict[int, int]] = {WAIT: {}, RUN: {}}
    for kind, number, n, total, square in rows:
        counts[kind] = counts.get(kind, 0) + n
        totals[kind] = totals.get(kind, 0.0) + total
        squares[kind] = squares.get(kind, 0.0) + square
        if kind in bins:
            bins[kind][number] = bins[kind].get(number, 0) + n
    run_mean = _mean(totals.get(RUN, 0.0), counts.get(RUN, 0))
    return model.Stats(
        seconds=seconds,
        arrivals=counts.get(ARRIVE, 0),
        starts=counts.get(WAIT, 0),
        finished=counts.get(DONE, 0),
        failed=counts.get(FAIL, 0),
        wait_mean=_mean(totals.get(WAIT, 0.0), counts.get(WAIT, 0)),
        wait_p50=percentile(bins[WAIT], 0.5),
        wait_p95=percentile(bins[WAIT], 0.95),
        run_mean=run_mean,
        run_p50=percentile(bins[RUN], 0.5),
        run_p95=percentile(bins[RUN], 0.95),
        run_scv=_scv(run_mean, _mean(squares.get(RUN, 0.0), counts.get(RUN, 0))),
    )


def history(rows: Iterable[tuple[float, float, Row]]) -> list[model.StatsBucket]:
    """The buckets of a history, oldest first, from (at, width, row) in any order."""
    buckets: dict[tuple[float, float], list[Row]] = {}
    for at, width, row in rows:
        buckets.setdefault((float(at), float(width)), []).append(row)
    return [_bucket(at, width, found) for (at, width), found in sorted(buckets.items())]


def totals(rows: Iterable[Row]) -> model.Totals:
    """All that a pool did, from its rows in any order; several may be of one kind and bin. A
    decision is a row whose kind is its direction, and whose bin the number of its reason."""
    from sprat.core.reason_labels import REASONS  # workers do not need it

    all_rows = list(rows)
    decisions = (
        model.DecisionCount(direction=direction, reason=REASONS[number], n=n)
        for direction in model.DIRECTIONS
        for number, n in _bins(all_rows, direction)
    )
    return model.Totals(**_sums(all_rows), decisions=tuple(decisions))


def _bucket(at: float, width: float, rows: list[Row]) -> model.StatsBucket:
    return model.StatsBucket(at=at, seconds=width, **_sums(rows))


def _sums(rows: list[Row]) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for kind, _, n, _, _ in rows:
        counts[kind] = counts.get(kind, 0) + n
    return {
        "arrivals": counts.get(ARRIVE, 0),
        "starts": counts.get(WAIT, 0),
        "finished": counts.get(DONE, 0),
        "failed": counts.get(FAIL, 0),
        "wait_seconds": sum(total for kind, _, _, total, _ in rows if kind == WAIT),
        "run_seconds": sum(total for kind, _, _, total, _ in rows if kind == RUN),
        "waits": _bins(rows, WAIT),
        "runs": _bins(rows, RUN),
    }


def _bins(rows: list[Row], wanted: str) -> tuple[tuple[int, int], ...]:
    bins: dict[int, int] = {}
    for kind, number, n, _, _ in rows:
        if kind == wanted and n:
            bins[number] = bins.get(number, 0) + n
    return tuple(sorted(bins.items()))


def _mean(total: float, n: int) -> float:
    return total / n if n else 0.0


def _scv(mean: float, mean_square: float) -> float:
    """Variance over squared mean; rounding may make a variance of nothing negative."""
    return max(0.0, mean_square / (mean * mean) - 1.0) if mean * mean > 0.0 else 0.0
