"""Many processes come back at once when the store does: its absence is noticed once."""

from __future__ import annotations

from processes import Together, at_once
from worlds import World

from sprat.core.model import Settlement, WorkerRegistration
from sprat.store.open_store import open_store

WORKERS = 8
LEASE = 1000.0
PARKED = 40


def come_back(place: int, together: Together, url: str) -> tuple[str, ...]:
    """The first step of each kind of process after an outage."""
    with open_store(url) as store:
        together()
        if place % 4 == 0:
            return store.workers.reap().workers
        if place % 4 == 1:
            store.workers.heartbeat(f"w{place}")
        elif place % 4 == 2:
            store.backend.keep_alive([f"w{place}"])
        else:
            store.pool("papers").claim(f"w{place}")
        return ()


def test_no_worker_is_lost_and_each_lease_is_renewed_once(shared: World, shared_url: str) -> None:
    store = shared.open()
    for number in range(WORKERS):
        about = WorkerRegistration(worker_id=f"w{number}", lease_seconds=LEASE)
        store.workers.register(about)
    shared.outage(2 * LEASE)
    assert at_once(WORKERS, come_back, shared_url) == [()] * WORKERS
    renewals = {worker.worker_id: worker.renewals for worker in store.workers.list()}
    # Those without a sign of life of their own: the processes that reap.
    assert renewals == {f"w{n}": 1 if n % 4 == 0 else 0 for n in range(WORKERS)}


def park_or_register(place: int, together: Together, url: str) -> int:
    """Parks items as fast as it can, or registers again and again as a worker that knows them."""
    with open_store(url) as store:
        pool = store.pool("papers")
        together()
        if place:
            for _ in range(PARKED):
                store.workers.register(
                    WorkerRegistration(worker_id="knows", pool_id="papers", tasks=["a:b"])
                )
            return 0
        parked = 0
        for _ in range(PARKED):
            item = pool.claim("parks")
            if item is not None:
                park = Settlement(item_id=item.id, token=item.token, outcome="park", delay=60.0)
                parked += pool.settle_many([park])[0]
        return parked


def test_items_parked_while_a_worker_registers_are_freed_by_the_next(
    shared: World, shared_url: str
) -> None:
    store = shared.open()
    pool = store.pool("papers")
    pool.push_many(range(PARKED // 2), task="a:b")
    store.workers.register(WorkerRegistration(worker_id="parks", pool_id="papers"))
    assert sum(at_once(2, park_or_register, shared_url)) >= PARKED // 2
    store.workers.register(WorkerRegistration(worker_id="knows", pool_id="papers", tasks=["a:b"]))
    counts = pool.counts()
    assert (counts.pending, counts.delayed) == (PARKED // 2, 0)
    assert pool.observe().parked == {}
