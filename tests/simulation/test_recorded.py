"""A pool's history becomes a trace again, and a simulated pool shows what a store would show."""

from __future__ import annotations

from array import array

import pytest

from sprat.core import histogram, model
from sprat.core.errors import InvalidInput
from sprat.simulation import recorded
from sprat.simulation.fleet import SimulatedFleet, Terms
from sprat.simulation.policy import PolicySizer
from sprat.simulation.statistics import EPOCH, SimulatedStatistics
from sprat.simulation.trace import Trace
from sprat.store.memory.ledger import Ledger


def bucket(at: float, arrivals: int, run: float = 0.0, finished: int = 0) -> model.StatsBucket:
    return model.StatsBucket(
        at=at, seconds=10.0, arrivals=arrivals, finished=finished, run_seconds=run
    )


def test_arrivals_are_spread_over_their_stretch() -> None:
    trace = recorded.as_trace("p", [bucket(100, 2, 8.0, 2), bucket(120, 1, 30.0, 3)])
    assert list(trace.arrivals) == [0.0, 5.0, 22.5]
    assert list(trace.services) == [4.0, 4.0, 10.0]


def test_a_stretch_in_which_nothing_ended_has_the_overall_mean() -> None:
    trace = recorded.as_trace("p", [bucket(100, 1), bucket(120, 1, 30.0, 3)])
    assert list(trace.services) == [10.0, 10.0]


def test_running_times_keep_their_mean_and_spread() -> None:
    short, long = histogram.bin_of(2.0), histogram.bin_of(40.0)
    history = [bucket(0, 5000, 50000.0, 5000).replace(runs=((short, 4000), (long, 1000)))]
    trace = recorded.as_trace("p", history)
    assert sum(trace.services) / trace.jobs == pytest.approx(10.0, rel=0.01)
    assert max(trace.services) / min(trace.services) == pytest.approx(20.0, rel=0.2)
    assert sum(s > 10.0 for s in trace.services) == pytest.approx(1000, rel=0.02)
    assert recorded.as_trace("p", history) == trace


def test_a_policy_sees_the_history_that_a_store_would_show() -> None:
    """Over hours, so that old stretches are rolled up and very old ones are dropped."""
    times = [120.0 * n + 31.0 * n % 97 for n in range(200)]
    trace = Trace(
        name="t", arrivals=array("d", sorted(times)), services=array("d", [50.0] * len(times))
    )
    fleet = SimulatedFleet(trace, Terms(cold_start_seconds=0.0))
    chronicle, ledger = SimulatedStatistics(history_seconds=4 * 3600.0), Ledger()
    fleet.launch(9)
    arrived = started = 0
    for step in range(1, 100):
        fleet.advance(260.0 * step)
        for job in range(arrived, fleet.arrived):
            ledger.count(EPOCH + fleet.arrivals[job], "arrive")
        for job in range(started, fleet.started):
            ledger.count(EPOCH + fleet.arrivals[job] + fleet.waits[job], "wait", fleet.waits[job])
        for job in fleet.finished:
            end = EPOCH + fleet.arrivals[job] + fleet.waits[job] + fleet.services[job]
            ledger.count(end, "run", fleet.services[job])
            ledger.count(end, "done")
        arrived, started = fleet.arrived, fleet.started
        chronicle.update(fleet)
        ledger.tidy(EPOCH + fleet.now)
        assert list(chronicle.history()) == ledger.history(EPOCH + fleet.now, 4 * 3600.0)
    assert {one.seconds for one in chronicle.history()} == {10.0, 900.0}


def test_no_history_is_said() -> None:
    with pytest.raises(InvalidInput, match="no recorded history"):
        recorded.as_trace("p", [])


def test_a_policy_sees_the_statistics_that_a_store_would_show() -> None:
    """The same jobs, counted by the simulator and by a store's own ledger."""
    jobs = 400
    arrivals = array("d", (37.0 * n % 977 + 9.0 * n for n in range(jobs)))
    trace = Trace(
        name="t",
        arrivals=array("d", sorted(arrivals)),
        services=array("d", (1.0 + 13.0 * n % 71 for n in range(jobs))),
    )
    fleet = SimulatedFleet(trace, Terms(cold_start_seconds=30.0))
    sizer = PolicySizer(model.PoolSettings(policy="fixed"))
    ledger, ends = Ledger(), []
    fleet.launch(5)
    counted = (0, 0)
    for step in range(1, 400):
        fleet.advance(5.0 * step)
        for job in range(counted[0], fleet.arrived):
            ledger.count(EPOCH + fleet.arrivals[job], "arrive")
        for job in range(counted[1], fleet.started):
            began = fleet.arrivals[job] + fleet.waits[job]
            ledger.count(EPOCH + began, "wait", fleet.waits[job])
            ends.append((began + fleet.services[job], fleet.services[job]))
        counted = fleet.arrived, fleet.started
        for end, seconds in [one for one in ends if one[0] <= fleet.now]:
            ledger.count(EPOCH + end, "run", seconds)
            ledger.count(EPOCH + end, "done")
            ends.remove((end, seconds))
        mine = sizer.observe(fleet).as_record().stats
        theirs = ledger.stats(EPOCH + fleet.now, 600.0)
        assert mine.as_dict() == pytest.approx(theirs.as_dict())
    assert mine.finished > 10
    assert sizer.observe(fleet).as_record().active == 5
