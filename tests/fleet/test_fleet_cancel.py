"""Cancelling a running job: its process is gone at once, and its worker takes the next job."""

from __future__ import annotations

import statistics
import time

from fleets import Fleet, is_alive

CANCEL_SECONDS = 0.2
TIMES = 7


def test_a_cancelled_job_in_a_child_is_stopped_within_200_ms(fleet: Fleet) -> None:
    """Half of them at least: the machine may be busy with something else meanwhile. The heartbeat
    is far too rare to help."""
    fleet.set(handler="jobs:slow_when_first_claimed", heartbeat_seconds=30, max_workers=1)
    fleet.set(isolation="process", start_on_push=True)
    took = []
    for n in range(TIMES):
        item = fleet.push()
        job = int(fleet.until("start", n + 1)[n][2])
        worker = fleet.worker_of(item)
        time.sleep(0.1 * (n % 3))  # whether it has just begun or runs for a while
        cancelled_at = time.monotonic()
        assert fleet.pool.cancel(item) == 1
        while is_alive(job):
            time.sleep(0.001)
        took.append(time.monotonic() - cancelled_at)
        assert fleet.item(item).status == "cancelled"
        assert fleet.store.workers.get(worker.worker_id).status == "active"
    assert statistics.median(took) < CANCEL_SECONDS, took


def test_the_worker_of_a_cancelled_job_takes_the_next_one_at_once(fleet: Fleet) -> None:
    fleet.set(handler="jobs:slow_when_first_claimed", heartbeat_seconds=30, max_workers=1)
    fleet.set(start_on_push=True)
    took = []
    first = fleet.push()
    fleet.until("start")
    worker = fleet.worker_of(first)
    waiting = [fleet.push() for _ in range(TIMES)]
    running = first
    for n, following in enumerate(waiting):
        cancelled_at = time.time()
        fleet.pool.cancel(running)
        started_at = float(fleet.until("start", n + 2)[n + 1][3])
        took.append(started_at - cancelled_at)
        assert fleet.worker_of(following).worker_id == worker.worker_id
        running = following
    fleet.pool.cancel(running)
    assert statistics.median(took) < 2 * CANCEL_SECONDS, took
    assert fleet.pool.counts().cancelled == TIMES + 1
