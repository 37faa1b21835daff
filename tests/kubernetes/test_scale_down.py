"""Workers are told to leave while there is work, and no running job is interrupted."""

from __future__ import annotations

import pytest
from clusters import until
from systems import MAX_WORKERS, POOL, System

from sprat import model

pytestmark = pytest.mark.timeout(600)

WAVES = 10
JOBS = 100  # of a wave
SECONDS = 0.15  # of each job


def test_scale_down_under_load_interrupts_no_job(system: System) -> None:
    """Each wave brings all workers, and while it is worked off they are told to leave one by one:
    25 waiting jobs to a worker are never idle workers."""
    system.start_controller(TARGET_PENDING_PER_WORKER=str(JOBS // MAX_WORKERS))
    ids: list[str] = []
    for _ in range(WAVES):
        ids += system.push(JOBS, seconds=SECONDS)
        until(lambda: system.pool.counts().ready < JOBS // 10, "the end of a wave")
    system.until_done(WAVES * JOBS)
    system.until_empty()
    system.check_each_done_once(ids)
    drained = [w for made in system.pool.decisions(limit=1000) for w in made.drained]
    interrupted = [i for i in system.items() if (i.attempts, i.given_back, i.epoch) != (1, 0, 1)]
    print(f"{len(ids)} jobs, {len(drained)} workers told to leave, {len(interrupted)} interrupted")
    assert interrupted == []
    assert len(drained) >= WAVES
    assert not system.store.workers.list(status=model.LOST, pool_id=POOL)
