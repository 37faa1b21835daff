"""Histograms: bins, percentiles, and sums that add up."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprat.core import histogram
from sprat.core.histogram import bin_of, edge_of, percentile, summarise, value_of

WIDTH = 1.25
durations = st.floats(0.0011, 1e8)


@pytest.mark.parametrize(
    ("seconds", "number"),
    [
        (-1, 0),
        (0, 0),
        (0.0005, 0),
        (0.001, 0),
        (0.002, 4),
        (0.004, 8),
        (0.032, 20),
        (0.064, 24),
        (2**30 / 1000, 120),
    ],
)
def test_bins_are_four_an_octave_from_a_millisecond(seconds: float, number: int) -> None:
    assert bin_of(seconds) == number


@pytest.mark.parametrize(
    "seconds",
    [
        *(0.1, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12),
        *(15, 20, 25, 30, 40, 45, 50, 60, 75, 90),
        *(60 * minutes for minutes in (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 90)),
        *(3600 * hours for hours in (2, 3, 4, 5, 6, 8, 10, 12, 24)),
    ],
)
def test_bin_ends_at_what_people_state(seconds: float) -> None:
    assert edge_of(bin_of(seconds)) == seconds
    assert bin_of(seconds + 1e-6) == bin_of(seconds) + 1
    assert bin_of(seconds + 1e-9) == bin_of(seconds), "what rounding adds is nothing"


def test_rounding_moved_no_edge_by_half_a_bin() -> None:
    for number, edge in enumerate(histogram.EDGES):
        assert edge == pytest.approx(0.001 * 2 ** (number / 4), rel=0.093)


def test_bins_are_a_quarter_wide_at_most() -> None:
    edges = histogram.EDGES
    assert all(1 < high / low <= WIDTH for low, high in itertools.pairwise(edges))


@pytest.mark.parametrize("seconds", [math.inf, 1e300, math.nan, -math.inf])
def test_nonsense_has_a_bin_too(seconds: float) -> None:
    assert 0 <= bin_of(seconds) <= histogram.LAST_BIN


@given(durations)
def test_value_of_a_bin_is_within_half_a_bin(seconds: float) -> None:
    assert value_of(bin_of(seconds)) == pytest.approx(seconds, rel=math.sqrt(WIDTH) - 1 + 1e-9)


@given(durations, durations)
def test_bins_are_in_order(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert bin_of(low) <= bin_of(high)


@given(st.integers(1, histogram.LAST_BIN - 1))
def test_value_of_a_bin_lies_in_it(number: int) -> None:
    assert bin_of(value_of(number)) == number


def test_percentile_of_nothing_is_zero() -> None:
    assert percentile({}, 0.5) == 0
    assert percentile({3: 0}, 0.5) == 0


@pytest.mark.parametrize(
    ("q", "number"), [(0.0, 2), (0.1, 2), (0.11, 5), (0.5, 5), (0.9, 5), (0.91, 9), (1.0, 9)]
)
def test_percentile_is_the_first_bin_that_reaches_it(q: float, number: int) -> None:
    assert percentile({5: 8, 9: 1, 2: 1}, q) == value_of(number)


@given(st.lists(durations, min_size=1), st.floats(0, 1))
def test_percentile_is_exact_to_a_bin(values: list[float], q: float) -> None:
    bins: dict[int, int] = {}
    for value in values:
        bins[bin_of(value)] = bins.get(bin_of(value), 0) + 1
    exact = sorted(values)[max(0, math.ceil(q * len(values)) - 1)]
    assert percentile(bins, q) == pytest.approx(exact, rel=WIDTH - 1)


@given(st.lists(durations, min_size=1), st.floats(0, 1), st.floats(0, 1))
def test_percentiles_are_in_order(values: list[float], one: float, other: float) -> None:
    bins = {bin_of(value): 1 for value in values}
    low, high = sorted((one, other))
    assert percentile(bins, low) <= percentile(bins, high)


def rows_of(kind: str, values: list[float]) -> list[histogram.Row]:
    return [(kind, bin_of(v), 1, v, v * v) for v in values]


def test_summary_of_nothing_is_zero() -> None:
    stats = summarise(60.0, [])
    assert stats.seconds == 60
    assert set(stats.replace(seconds=0).as_dict().values()) == {0}


def test_summary_counts_by_kind() -> None:
    rows = [
        *[("arrive", 0, 5, 0.0, 0.0), ("arrive", 0, 2, 0.0, 0.0)],
        *[("done", 0, 3, 0.0, 0.0), ("fail", 0, 2, 0.0, 0.0)],
        *rows_of("wait", [1.0, 3.0]),
        *rows_of("run", [2.0, 4.0, 6.0]),
    ]
    stats = summarise(10.0, rows)
    assert (stats.arrivals, stats.starts, stats.finished, stats.failed) == (7, 2, 3, 2)
    assert (stats.wait_mean, stats.run_mean) == (2.0, 4.0)
    assert stats.wait_p50 == value_of(bin_of(1.0))
    assert stats.wait_p95 == value_of(bin_of(3.0))
    assert stats.run_p50 == value_of(bin_of(4.0))
    assert stats.run_scv == pytest.approx((8 / 3) / 16)
    assert stats.arrivals_per_second == 0.7


@given(st.floats(0.002, 1e6), st.integers(1, 50))
def test_constant_runs_do_not_vary(seconds: float, n: int) -> None:
    assert summarise(1.0, rows_of("run", [seconds] * n)).run_scv == pytest.approx(0, abs=1e-6)


@given(st.lists(durations), st.lists(durations))
def test_history_may_be_summed_up_in_parts(one: list[float], other: list[float]) -> None:
    """Rows of one kind and bin can be merged beforehand, as a roll-up does."""
    merged: dict[int, list[float]] = {}
    for _, number, n, total, squares in rows_of("run", one + other):
        sums = merged.setdefault(number, [0, 0.0, 0.0])
        for place, value in enumerate((n, total, squares)):
            sums[place] += value
    rolled = summarise(1.0, [("run", b, int(n), t, s) for b, (n, t, s) in merged.items()])
    plain = summarise(1.0, [*rows_of("run", other), *rows_of("run", one)])
    assert (rolled.run_p50, rolled.run_p95) == (plain.run_p50, plain.run_p95)
    assert rolled.run_mean == pytest.approx(plain.run_mean)
