"""Services that refuse calls: one refusal slows one job down, many pause the pool."""

from __future__ import annotations

import random

import pytest
from fleets import Fleet, eventually

CALLS = 160
WORKERS = 10


@pytest.fixture
def limited(fleet: Fleet) -> Fleet:
    fleet.set(handler="jobs:rate_limited", start_on_push=True, max_workers=1)
    return fleet


def test_a_429_now_and_then_delays_its_own_job_only(limited: Fleet) -> None:
    """A pool that were paused for these 60 seconds would not be done in time."""
    limited.set(start_on_push=False)
    refused, done = [], []
    for _ in range(4):
        refused.append(limited.push(refused=1, retry_after=60))
        done.append(limited.push())
    limited.check()
    for i in done:
        limited.until_status(i, "done", within=30)
    assert [limited.item(i).status for i in refused] == ["pending"] * 4
    assert {limited.item(i).attempts for i in refused} == {0}
    assert not limited.pool.state().paused
    limited.pool.cancel(*refused)
    limited.may_stay = True  # a fork server looks when they would have been due


def test_three_429_in_a_row_pause_the_pool_and_the_reason_is_stored(limited: Fleet) -> None:
    limited.set(start_on_push=False)
    ids = [limited.push(refused=1, retry_after=60) for _ in range(3)]
    waiting = limited.push()
    limited.check()
    eventually(lambda: limited.pool.state().paused)
    assert limited.pool.state().pause_reason == "HttpError: HTTP 429"
    assert limited.item(waiting).status == "pending"
    assert sum(limited.starts().values()) == 3
    limited.pool.cancel(*ids, waiting)
    limited.may_stay = True


def test_a_worker_stays_through_a_short_pause(limited: Fleet) -> None:
    """Longer than it would be idle otherwise: to start another costs more than to wait."""
    limited.set(idle_seconds=0.1)
    ids = [limited.push(refused=1, retry_after=2) for _ in range(3)]
    eventually(lambda: limited.pool.state().paused)
    [before] = limited.workers("active")
    limited.until_done(3)
    assert {limited.item(i).claimed_by for i in ids} == {before.worker_id}
    assert {limited.item(i).attempts for i in ids} == {1}
    assert len(limited.workers()) == 1


def test_time_outs_are_retried_uncharged_up_to_max_transient(fleet: Fleet) -> None:
    fleet.set(handler="jobs:time_out", start_on_push=True, max_transient=3, max_workers=1)
    fleet.set(retry_cap_seconds=0.05)
    item = fleet.push(max_retries=2)
    failed = fleet.until_status(item, "poisoned")
    assert (failed.attempts, failed.transients, fleet.starts()[item]) == (2, 3, 5)
    assert failed.error.startswith("TimeoutError: the service does not answer")


def test_refused_calls_neither_pause_the_pool_nor_replace_workers(fleet: Fleet) -> None:
    fleet.set(handler="jobs:refused_now_and_then", max_workers=WORKERS, idle_seconds=1.0)
    dice = random.Random(1)
    calls = [fleet.job(n=n, seconds=dice.uniform(0.02, 0.2)) for n in range(CALLS)]
    fleet.pool.push_many(calls)
    fleet.check()
    pauses = []

    def is_over() -> bool:
        state = fleet.pool.state()
        if state.paused:
            pauses.append(state.pause_reason)
        return fleet.pool.counts().done == CALLS

    eventually(is_over, fleet.pool.counts)
    items = fleet.pool.items(limit=CALLS)
    assert sum(item.transients for item in items) >= 1
    assert {item.attempts for item in items} == {1}
    assert not pauses
    assert len(fleet.workers()) <= WORKERS
