"""The manual verification of the source document, step by step, with real processes."""

from __future__ import annotations

import signal

from fleets import Fleet, eventually, kill

from sprat.fleet import reaper


def test_the_nine_steps(fleet: Fleet) -> None:
    fleet.set(max_workers=3, max_jobs=1)

    # 1. Seed 10 jobs.
    ids = [fleet.push(say=n, seconds=0.2) for n in range(10)]
    assert fleet.pool.size() == 10

    # 2. Run the checker with at most 3 workers.
    checked = fleet.check(max_workers=3)
    assert (checked.spawned, checked.queue_depth, checked.active_workers) == (3, 10, 0)
    assert len(checked.spawned_ids) == 3

    # 3. Three workers appear, claim, process and exit.
    eventually(lambda: len(fleet.workers("active")) == 3)
    eventually(lambda: fleet.pool.counts().claimed == 3)
    eventually(
        lambda: all(
            fleet.store.workers.get(worker_id).status == "terminated"
            for worker_id in checked.spawned_ids
        )
    )

    # 4. Run the checker again: never more than three, until nothing is left.
    while fleet.pool.size():
        fleet.check(max_workers=3)
        assert len(fleet.workers("starting", "active")) <= 3
    fleet.until_done(10)

    # 5. All 10 are done, each by one start, in a worker of its own.
    assert [fleet.item(i).result for i in ids] == list(range(10))
    assert set(fleet.starts().values()) == {1}
    assert len({fleet.item(i).claimed_by for i in ids}) == 10
    fleet.until_gone()
    assert {worker.status for worker in fleet.workers()} == {"terminated"}

    # 6. Kill a worker in the middle of its job, and its fork server: nobody is left to notice.
    fleet.set(handler="jobs:slow_at_first", heartbeat_seconds=0.5, max_jobs=0)
    slow = fleet.push()
    fleet.check()
    fleet.until("start", 11)
    victim = fleet.worker_of(slow)
    for server in fleet.fork_servers():
        kill(server, signal.SIGKILL)
    kill(victim.pid, signal.SIGKILL)
    fleet.until_gone()
    assert fleet.item(slow).status == "claimed"

    # 7. Run the reaper, once the lease has ended.
    reaped = eventually(lambda: reaper.reap(fleet.store).workers)
    assert reaped == (victim.worker_id,)

    # 8. The job is back in the pool, the worker is lost, and the next worker does the job.
    assert fleet.item(slow).status == "pending"
    assert fleet.store.workers.get(victim.worker_id).status == "lost"
    fleet.check()
    assert fleet.until_status(slow, "done").result == 2

    # 9. A job that fails max_retries times is poisoned.
    fleet.until_gone()
    fleet.set(handler="jobs:fail")
    bad = fleet.push(max_retries=3)
    fleet.check()
    poisoned = fleet.until_status(bad, "poisoned")
    assert poisoned.attempts == fleet.starts()[bad] == 3
    assert poisoned.error.startswith("ValueError: it never works")
