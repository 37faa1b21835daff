"""Workers are told to leave while they are at work, and no running job is interrupted."""

from __future__ import annotations

import json

import pytest
from systems import MAX_WORKERS, POOL, System

from sprat.core import model

pytestmark = pytest.mark.timeout(600)

JOBS = 1000
SECONDS = 0.15  # of each job


def are_all_at_work(system: System) -> bool:
    active = system.store.workers.list(status=model.ACTIVE, pool_id=POOL)
    return len(active) == MAX_WORKERS and all(worker.current_task_id for worker in active)


def test_scale_down_under_load_interrupts_no_job(system: System) -> None:
    """Again and again all workers but one are told to leave; the controller brings others."""
    system.start_controller()
    ids = system.push(JOBS, seconds=SECONDS)
    leaving = 0
    while system.pool.counts().ready > JOBS // 10:
        if are_all_at_work(system):
            said = system.run("scale", POOL, "--target-workers", "1", "--json")
            leaving += json.loads(said)["terminating"]
    system.until_done(JOBS)
    system.until_empty()
    system.check_each_done_once(ids)
    interrupted = [i for i in system.items() if (i.attempts, i.given_back, i.epoch) != (1, 0, 1)]
    print(f"{JOBS} jobs, {leaving} workers told to leave, {len(interrupted)} jobs interrupted")
    assert leaving >= 3 * (MAX_WORKERS - 1)  # as often as the machine is fast
    assert interrupted == []
    assert not system.store.workers.list(status=model.LOST, pool_id=POOL)
