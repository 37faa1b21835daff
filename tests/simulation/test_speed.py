"""How fast a replay is, in processor time: a machine that others use too does not matter."""

from __future__ import annotations

import random
import time
from array import array

import pytest

from sprat.simulation import contenders
from sprat.simulation.trace import Trace

JOBS = 1_000_000


@pytest.mark.alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize("policy", ["slo", "keda"])
def test_a_day_of_a_million_jobs_replays_in_well_under_a_minute(policy: str) -> None:
    source = random.Random(7)
    trace = Trace(
        name="day",
        arrivals=array("d", sorted(source.uniform(0, 86400) for _ in range(JOBS))),
        services=array("d", (source.expovariate(1 / 8.0) for _ in range(JOBS))),
    )
    conditions = contenders.Conditions(cold_start_seconds=40.0)
    began = time.process_time()
    seen = contenders.run(trace, policy, {}, conditions)
    assert seen.jobs == JOBS
    assert time.process_time() - began < 40
