"""Reapers against each other, and against workers that are not as dead as they look."""

from __future__ import annotations

from collections import Counter

import pytest
from processes import Together, at_once
from worlds import World, all_items

from sprat.core.model import Reaped, WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.store import Store

WORKERS = 12
LEASE = 10.0


def enrol(store: Store, worker_id: str) -> None:
    store.workers.register(WorkerRegistration(worker_id=worker_id, lease_seconds=LEASE))


def reap(place: int, together: Together, url: str) -> Reaped:
    with open_store(url) as store:
        together()
        return store.workers.reap()


@pytest.mark.parametrize("reapers", [2, 8])
def test_each_stale_worker_is_reaped_once(shared: World, shared_url: str, reapers: int) -> None:
    store = shared.open()
    pool = store.pool("papers")
    for number in range(WORKERS):
        enrol(store, f"w{number}")
        pool.push_many([f"started {number}", f"ahead {number}"], max_retries=2)
        assert len(pool.claim_many(f"w{number}", 2, announced=True)) == 2
        pool.push(f"last {number}", max_retries=1)
        assert pool.claim(f"w{number}") is not None
    shared.advance(LEASE + 1)
    answers = at_once(reapers, reap, shared_url)
    reaped = Counter(worker for answer in answers for worker in answer.workers)
    assert reaped == Counter(f"w{number}" for number in range(WORKERS))
    assert sum(answer.released for answer in answers) == 3 * WORKERS
    assert sum(answer.poisoned for answer in answers) == WORKERS
    found = Counter((i.data.split()[0], i.status, i.attempts, i.epoch) for i in all_items(pool))
    assert found == {
        ("started", "pending", 1, 1): WORKERS,
        ("ahead", "pending", 0, 1): WORKERS,
        ("last", "poisoned", 1, 1): WORKERS,
    }


# -- a late result ------------------------------------------------------------------------------

ROUNDS = 60


def complete_or_reap(place: int, together: Together, world: World) -> list[tuple[bool, str, int]]:
    """Whether the late result was taken and what became of the item, or how many were released."""
    log: list[tuple[bool, str, int]] = []
    with open_store(world.url) as store:
        pool = store.pool("papers")
        for number in range(ROUNDS):
            if place == 0:
                enrol(store, "late")
                item_id = pool.push(number, priority=number)
                item = pool.claim("late")
                assert item is not None
                assert item.id == item_id
                world.advance(LEASE + 1)
            together()
            if place == 0:
                for _ in range(number % 5):  # or it would always be first: reaping takes longer
                    pool.counts()
                took = pool.complete(item, "late")
                together()
                log.append((took, pool.get(item).status, pool.get(item).attempts))
            else:
                reaped = store.workers.reap()
                together()
                log.append((bool(reaped.workers), "", reaped.released))
    return log


def test_late_result_is_taken_or_the_item_is_released_but_not_both(shared: World) -> None:
    completed, reaped = at_once(2, complete_or_reap, shared)
    orders = Counter(took for took, _, _ in completed)
    print(f"the result came first {orders[True]} times, the reaper {orders[False]} times")
    for (took, status, attempts), (found, _, released) in zip(completed, reaped, strict=True):
        assert found
        assert (status, attempts) == (("done", 1) if took else ("pending", 1))
        assert released == (0 if took else 1)
    assert shared.open().pool("papers").counts().done == orders[True]
