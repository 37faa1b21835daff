"""The simulator against real processes: the same arrivals and run times cost the same."""

from __future__ import annotations

import sqlite3
import time
from array import array
from pathlib import Path

import pytest
from fleets import POOL, Fleet

from sprat.core import model
from sprat.simulation.policy import simulate
from sprat.simulation.trace import Trace

IDLE_SECONDS = 1.0
START_SECONDS = 0.05  # of a forked worker


def plan() -> list[tuple[float, float]]:
    """When jobs come and how long they sleep. First bursts after which all leave; then one round
    per second, so that a worker which gets no job in a round leaves before the next but one: the
    size of the fleet does not depend on which worker takes which job."""
    bursts = [(4.0 * n, 0.3 + 0.2 * n) for n in range(3) for _ in range(3 + n)]
    sizes = (4, 4, 4, 2, 2, 2, 5, 5, 3, 3, 6, 6)
    return bursts + [(12.0 + n, 0.6) for n, jobs in enumerate(sizes) for _ in range(jobs)]


def push_on_time(fleet: Fleet, jobs: list[tuple[float, float]]) -> None:
    began = time.monotonic()
    for at in sorted({at for at, _ in jobs}):
        time.sleep(max(0.0, began + at - time.monotonic()))
        fleet.pool.push_many([fleet.job(seconds=s) for due, s in jobs if due == at])


def recorded(fleet: Fleet) -> Trace:
    items = sorted(fleet.pool.items(limit=1000), key=lambda item: item.created_at)
    ran = [(item.finished_at or 0.0) - (item.claimed_at or 0.0) for item in items]
    return Trace(
        name="recorded",
        arrivals=array("d", (item.created_at - items[0].created_at for item in items)),
        services=array("d", ran),
    )


def paid_seconds(file: Path) -> float:
    """From the registration of each worker until it left."""
    with sqlite3.connect(file) as connection:
        (paid,) = connection.execute(
            "SELECT sum(ended_at - started_at) FROM worker_registry WHERE pool_id = ?", (POOL,)
        ).fetchone()
    return float(paid)


@pytest.mark.alone
def test_simulated_cost_is_that_of_a_forked_fleet(fleet: Fleet) -> None:
    settings: dict[str, object] = {"idle_seconds": IDLE_SECONDS, "max_workers": 20}
    fleet.set(isolation="none", start_on_push=True, **settings)
    jobs = plan()
    push_on_time(fleet, jobs)
    fleet.until_done(len(jobs))
    fleet.until_gone()
    trace = recorded(fleet)
    pool = model.PoolSettings(**settings)
    seen = simulate(trace, pool, cold_start_seconds=START_SECONDS, on_push=True)
    real = paid_seconds(Path(fleet.url.removeprefix("sqlite:///"))) / trace.useful_seconds
    assert seen.cost == pytest.approx(real, rel=0.1)
