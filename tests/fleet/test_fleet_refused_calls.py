"""A service that refuses some calls delays those calls, and neither the pool nor the fleet."""

from __future__ import annotations

import random

from fleets import Fleet, eventually

CALLS = 160
WORKERS = 10


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
