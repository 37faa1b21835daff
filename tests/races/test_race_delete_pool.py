"""Processes push while another one deletes the pool: what was acknowledged can be claimed."""

from __future__ import annotations

from processes import Together, at_once
from worlds import World

from sprat.core.errors import PoolInUse
from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store

PROCESSES = 6
ROUNDS = 25


def push_or_delete(place: int, together: Together, url: str) -> list[str | bool]:
    """The ids that were pushed, one per round; the first process deletes, and says whether."""
    answers: list[str | bool] = []
    with open_store(url) as store:
        for number in range(ROUNDS):
            pool = store.pool(f"p{number}")
            if place == 0:
                pool.cancel(pool.push("finished"))
            together()
            if place:
                plain = {} if place % 2 else {"tenant": "acme", "key": f"k{place}"}
                answers.append(pool.push(place, **plain))  # type: ignore[arg-type]
                continue
            try:
                answers.append(store.delete_pool(pool.name))
            except PoolInUse:
                answers.append(False)
    return answers


def test_a_push_beside_a_delete_is_not_lost(shared: World, shared_url: str) -> None:
    deletions, *pushes = at_once(PROCESSES, push_or_delete, shared_url)
    store = shared.open()
    store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=600.0))
    for number, ids in enumerate(zip(*pushes, strict=True)):
        pool = store.pool(f"p{number}")
        assert pool.name in store.pools()
        assert {item.id for item in pool.claim_many("w1", 100)} == set(ids)
        assert pool.counts().claimed == PROCESSES - 1
    assert len(deletions) == ROUNDS
