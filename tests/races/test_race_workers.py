"""One worker id, two processes: the older incarnation can do nothing any more."""

from __future__ import annotations

from processes import Together, at_once
from worlds import World

from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store

ROUNDS = 25

Seen = tuple[int, bool | None, bool]


def register_and_work(place: int, together: Together, url: str) -> list[Seen]:
    """The incarnation, whether what it claimed at once could be settled (None: nothing was
    handed out), and whether it was given an item after both had registered."""
    log: list[Seen] = []
    with open_store(url) as store:
        pool = store.pool("papers")
        for _ in range(ROUNDS):
            together()
            worker = store.workers.register(WorkerRegistration(worker_id="twin"))
            early = pool.claim(worker)
            together()
            settled = None if early is None else pool.complete(early)
            late = pool.claim(worker)
            if late is not None:
                assert pool.complete(late)
            log.append((worker.incarnation, settled, late is not None))
    return log


def test_older_incarnation_is_fenced(shared: World, shared_url: str) -> None:
    pool = shared.open().pool("papers")
    pool.push_many(range(ROUNDS * 4), max_retries=100)
    one, two = at_once(2, register_and_work, shared_url)
    done = 0
    for number in range(ROUNDS):
        older, newer = sorted([one[number], two[number]])
        assert (older[0], newer[0]) == (2 * number + 1, 2 * number + 2)
        assert older[1] in (None, False)
        assert not older[2]
        assert newer[1:] == (True, True)
        done += 2
    counts = pool.counts()
    assert (counts.done, counts.claimed) == (done, 0)
