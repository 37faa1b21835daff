"""Eight processes on one pool: each item is claimed once, and settled once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import pytest
from processes import Together, at_once
from worlds import World, all_items

from sprat.core.model import WorkerRecord, WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool

PROCESSES = 8
ITEMS = 300
BATCH = 7  # all first claims together are fewer than the items

Settled = list[tuple[str, bool]]  # item id, and whether the store took the result


def one_by_one(pool: WorkPool, worker: WorkerRecord, result: int, together: Together) -> Settled:
    log: Settled = []
    item = pool.claim(worker)
    together()
    while item is not None:
        log.append((item.id, pool.complete(item, result)))
        item = pool.claim(worker)
    return log


def in_batches(pool: WorkPool, worker: WorkerRecord, result: int, together: Together) -> Settled:
    log: Settled = []
    items = pool.claim_many(worker, BATCH)
    together()
    while items:
        settled = pool.settle_many([pool.completion(item, result) for item in items])
        log += zip([item.id for item in items], settled, strict=True)
        items = pool.claim_many(worker, BATCH)
    return log


def settle_and_claim_at_once(
    pool: WorkPool, worker: WorkerRecord, result: int, together: Together
) -> Settled:
    log: Settled = []
    held = pool.exchange(worker, claim=1).items
    together()
    while held:
        settlements = [pool.completion(item, result) for item in held]
        answer = pool.exchange(worker, settlements=settlements, claim=1)
        log += zip([item.id for item in held], answer.settled, strict=True)
        held = answer.items
    return log


def work(place: int, together: Together, url: str, way: Callable[..., Settled]) -> Settled:
    """All make their first claim at once, and go on at once when each has one."""
    with open_store(url) as store:
        worker = store.workers.register(WorkerRegistration(worker_id=f"w{place}"))
        together()
        return way(store.pool("papers"), worker, place, together)


@pytest.mark.parametrize("way", [one_by_one, in_batches, settle_and_claim_at_once])
def test_each_item_is_claimed_and_completed_exactly_once(
    shared: World, shared_url: str, way: Callable[..., Settled]
) -> None:
    pool = shared.open().pool("papers")
    ids = pool.push_many(range(ITEMS))
    logs = at_once(PROCESSES, work, shared_url, way)
    settled = [entry for log in logs for entry in log]
    assert Counter(settled) == Counter({(item_id, True): 1 for item_id in ids})
    assert all(logs), "each had its first claim before any went on"
    by = {item_id: place for place, log in enumerate(logs) for item_id, _ in log}
    for item in all_items(pool):
        assert (item.status, item.epoch, item.attempts) == ("done", 1, 1)
        assert (item.result, item.claimed_by) == (by[item.id], f"w{by[item.id]}")
    assert pool.counts().done == ITEMS


# -- draining -----------------------------------------------------------------------------------

ROUNDS = 12


def claim_or_drain(place: int, together: Together, url: str) -> list[list[float]]:
    """The first drains the worker, and says when that was answered; the others claim in its
    name until they get nothing, and say when they asked for what they got."""
    moments: list[list[float]] = []
    with open_store(url) as store:
        pool = store.pool("papers")
        for number in range(ROUNDS):
            worker_id = f"w{number}"
            if place == 0:
                store.workers.register(WorkerRegistration(worker_id=worker_id))
            together()
            if place == 0:
                pool.get(pool.items(limit=1)[0])  # a moment for the others
                assert store.workers.update_status(worker_id, "terminating")
                moments.append([time.monotonic()])
            else:
                moments.append(claim_until_told_off(pool, worker_id))
            together()
    return moments


def claim_until_told_off(pool: WorkPool, worker_id: str) -> list[float]:
    asked: list[float] = []
    while True:
        now = time.monotonic()
        if pool.claim(worker_id) is None:
            return asked
        asked.append(now)


def test_no_claim_succeeds_after_the_drain_was_answered(shared: World, shared_url: str) -> None:
    pool = shared.open().pool("papers")
    pool.push_many(range(10_000))
    drainer, *claimers = at_once(4, claim_or_drain, shared_url)
    assert pool.size() > 0, "the claimers stopped for want of items"
    for number, (answered,) in enumerate(drainer):
        late = [asked for log in claimers for asked in log[number] if asked > answered]
        assert late == []
    claimed = sum(len(asked) for log in claimers for asked in log)
    assert pool.counts().claimed == claimed
