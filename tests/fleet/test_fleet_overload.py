"""More work than the machine can do: the fleet stays small, and no worker is taken for dead."""

from __future__ import annotations

import os
import time

import pytest
from fleets import Fleet

from sprat.core import model

JOBS_PER_SECOND = 30
SECONDS = 15
JOB_SECONDS = 0.05  # of a processor
PER_CORE = 15  # workers: far fewer than 100, which the maximum allows


@pytest.mark.alone
@pytest.mark.timeout(300)
def test_overload_loses_no_worker_and_repeats_no_job(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPRAT_LAUNCH_WHEN_SATURATED")
    cores = os.cpu_count() or 1
    fleet.set(handler="jobs:compute", start_on_push=True, max_workers=100 * cores)
    fleet.set(heartbeat_seconds=model.HEARTBEAT_SECONDS)
    jobs = JOBS_PER_SECOND * SECONDS
    began = time.monotonic()
    for n in range(jobs):
        time.sleep(max(0.0, began + n / JOBS_PER_SECOND - time.monotonic()))
        fleet.push(seconds=JOB_SECONDS * cores / 2)
    fleet.until_done(jobs, within=240)
    assert [item.id for item in fleet.pool.items(limit=jobs) if item.attempts > 1] == []
    assert fleet.workers(model.LOST) == []
    assert max(made.desired for made in fleet.pool.decisions(limit=1000)) <= PER_CORE * cores
