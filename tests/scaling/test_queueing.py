"""Queueing arithmetic against what is known of it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprat.scaling.slo import queueing
from sprat.scaling.slo.queueing import Backlog, Service


def test_square_root_staffing_is_a_load_and_so_many_roots_of_it() -> None:
    assert queueing.square_root_staffed(100.0, 0.5) == 105
    assert queueing.square_root_staffed(0.0, 3.0) == 0


def test_reach_counts_free_workers_arrivals_and_ends_of_jobs() -> None:
    line = Backlog(busy=2, free=1, arrivals=(5.0, 30.0))
    job = Service(mean=10.0, scv=0.0)
    assert queueing.reach(line, job, at=0.0, z=0.0) == 1
    assert queueing.reach(line, job, at=10.0, z=0.0) == pytest.approx(1 + 1 + 3 + 0.5)
    assert queueing.reach(line, job, at=10.0, z=1.0) < queueing.reach(line, job, at=10.0, z=0.5)


lines = st.builds(
    Backlog,
    busy=st.integers(0, 30),
    free=st.integers(0, 5),
    arrivals=st.lists(st.floats(0, 60), max_size=8).map(tuple),
)
services = st.builds(Service, mean=st.floats(0.01, 1000) | st.just(math.inf), scv=st.floats(0, 30))


@given(lines, services, st.integers(1, 300), st.floats(1, 300), st.floats(0, 3))
def test_launches_are_the_fewest_that_reach_the_items(
    line: Backlog, service: Service, items: int, slack: float, z: float
) -> None:
    cold_start = 40.0
    at = cold_start + slack
    n = queueing.launches(line, service, items=items, at=at, cold_start=cold_start, z=z)
    assert 0 <= n <= items

    def reached(more: int) -> float:
        after = line.replace(arrivals=(*line.arrivals, *(cold_start,) * more))
        return queueing.reach(after, service, at=at, z=z)

    # Many moments, added up, are not to the last digit one moment times their number.
    assert reached(n) >= items * (1 - 1e-9)
    assert n <= 1 or reached(n - 1) < items * (1 + 1e-9)


def test_nobody_is_launched_who_would_come_too_late() -> None:
    job = Service(mean=10.0)
    assert queueing.launches(Backlog(), job, items=5, at=39.0, cold_start=40.0, z=1.0) == 0
