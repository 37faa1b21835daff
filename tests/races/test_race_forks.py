"""One Store object, many processes and threads: it may be used after a fork, on both sides."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from threading import Barrier, Event

from processes import PATIENCE, Together, at_once, beside, hear
from worlds import World, all_items

from sprat.core.model import WorkerRegistration
from sprat.store.store import Store

THREADS = 8
MOST_PUSHES = 1_000  # of one thread: on a busy machine the children would never get their turn


def push_some(store: Store, n: int = 10) -> list[str]:
    return [store.pool("papers").push(number) for number in range(n)]


def push_in_child(place: int, together: Together, store: Store) -> list[str]:
    together()
    return push_some(store)


def stored_ids(store: Store) -> list[str]:
    return sorted(item.id for item in all_items(store.pool("papers")))


def test_store_is_usable_in_children_and_still_in_the_parent(shared: World) -> None:
    store = shared.open()
    before = push_some(store)
    children = at_once(4, push_in_child, store)
    after = push_some(store)
    pushed = [*before, *after, *(item_id for ids in children for item_id in ids)]
    assert stored_ids(store) == sorted(pushed)


def push_when_told(pipe: Connection, store: Store) -> None:
    pipe.send(push_some(store))
    hear(pipe)
    pipe.send(push_some(store))


def test_child_loses_nothing_when_its_parent_closes_the_store(shared: World) -> None:
    """The parent is the last user that it knows of; it must know of the child."""
    store = shared.open()
    pushed = push_some(store)
    process, pipe = beside(push_when_told, store)
    pushed += hear(pipe)
    store.close()
    pipe.send("go on")
    pushed += hear(pipe)
    process.join(PATIENCE)
    assert stored_ids(shared.open()) == sorted(pushed)


def test_parent_loses_nothing_when_its_child_closes_the_store(shared: World) -> None:
    store = shared.open()
    pushed = push_some(store)
    for ids in at_once(2, push_and_close, store):
        pushed += ids
    pushed += push_some(store)
    assert stored_ids(shared.open()) == sorted(pushed)


def push_and_close(place: int, together: Together, store: Store) -> list[str]:
    together()
    pushed = push_some(store)
    store.close()
    return pushed


def test_fork_in_the_middle_of_other_threads_work(shared: World) -> None:
    store = shared.open()
    stop = Event()

    def push_until_told() -> list[str]:
        pushed = push_some(store)
        while not stop.is_set() and len(pushed) < MOST_PUSHES:
            pushed += push_some(store, 1)
        return pushed

    with ThreadPoolExecutor(4) as threads:
        busy = [threads.submit(push_until_told) for _ in range(4)]
        try:
            children = [ids for _ in range(5) for ids in at_once(3, push_in_child, store)]
        finally:
            stop.set()
        pushed = [item_id for ids in children for item_id in ids]
        pushed += [item_id for future in busy for item_id in future.result(PATIENCE)]
    assert stored_ids(store) == sorted(pushed)


def use_in_threads(store: Store) -> list[str]:
    """Claim and complete with many threads; the ids of what they did."""
    together = Barrier(THREADS)

    def work(number: int) -> list[str]:
        worker = f"{number}-of-many"
        together.wait(PATIENCE)
        store.workers.register(WorkerRegistration(worker_id=worker))
        pool = store.pool("papers")
        done: list[str] = []
        while (item := pool.claim(worker)) is not None:
            assert pool.complete(item, number)
            done.append(item.id)
        return done

    with ThreadPoolExecutor(THREADS) as threads:
        return [item_id for ids in threads.map(work, range(THREADS)) for item_id in ids]


def test_many_threads_share_one_store(shared: World) -> None:
    store = shared.open()
    ids = store.pool("papers").push_many(range(200))
    assert sorted(use_in_threads(store)) == sorted(ids)
    assert store.pool("papers").counts().done == 200


def use_in_threads_of_a_child(place: int, together: Together, store: Store) -> list[str]:
    return use_in_threads(store)


def test_many_threads_of_a_child_share_one_store(shared: World) -> None:
    store = shared.open()
    ids = store.pool("papers").push_many(range(100))
    assert sorted(at_once(1, use_in_threads_of_a_child, store)[0]) == sorted(ids)
    assert store.pool("papers").counts().done == 100
