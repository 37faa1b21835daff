"""Wait: an idle worker sleeps until there is something to do, or a reason to leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from sprat.core.errors import UnknownWorker
from sprat.core.model import WorkerRecord
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Advance = Callable[[float], None]
Enrol = Callable[..., WorkerRecord]

LONG = 3600.0  # store's seconds: longer than any test moves the clock
SOON = 20.0  # real seconds within which a waiter must have woken; it normally takes milliseconds


@pytest.fixture
def waiting(
    pool: WorkPool, open_again: Callable[[], Store]
) -> Iterator[Callable[..., Future[bool]]]:
    """Begins to wait in another thread, through a store of its own."""
    with ThreadPoolExecutor(4) as threads:

        def waiting(worker: str | WorkerRecord | None = None) -> Future[bool]:
            begun = Event()
            other = open_again().pool(pool.name)

            def wait() -> bool:
                begun.set()
                return other.wait(worker, seconds=LONG)

            future = threads.submit(wait)
            assert begun.wait(SOON)
            return future

        yield waiting
        pool.push("whoever still waits may go")
        pool.resume()


Waiting = Callable[..., "Future[bool]"]


def test_ready_item_needs_no_wait(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("work")
    assert pool.wait("w1", seconds=LONG)
    assert pool.wait(seconds=LONG)


def test_ready_item_is_seen_in_no_time_at_all(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("work")
    assert pool.wait("w1", seconds=0)


def test_nothing_to_do_is_false_when_the_time_is_up(pool: WorkPool, worker: WorkerRecord) -> None:
    assert not pool.wait("w1", seconds=0.01)
    assert not pool.wait(seconds=0.01)
    pool.push("later", delay=60)
    pool.push("parked", backlog=True)
    assert not pool.wait("w1", seconds=0.01)


def test_nobody_in_particular_waits_for_work_of_any_group(
    pool: WorkPool, worker: WorkerRecord, waiting: Waiting
) -> None:
    waiter = waiting()
    pool.push("needs gpu", group="gpu")
    assert waiter.result(SOON)
    assert not pool.wait("w1", seconds=0.01)


def test_push_wakes_a_waiter(pool: WorkPool, worker: WorkerRecord, waiting: Waiting) -> None:
    first, second = waiting("w1"), waiting()
    pool.push("work")
    assert first.result(SOON)
    assert second.result(SOON)


@pytest.mark.parametrize("how", ["fail", "hand_back", "release", "requeue"])
def test_item_that_comes_back_wakes_a_waiter(
    pool: WorkPool, enrol: Enrol, waiting: Waiting, how: str
) -> None:
    enrol("w1"), enrol("w2")
    pool.push("work")
    item = pool.claim("w2")
    assert item is not None
    if how == "requeue":
        pool.cancel(item.id)
    future = waiting("w1")
    if how == "fail":
        pool.fail(item)
    elif how == "hand_back":
        pool.hand_back(item)
    elif how == "release":
        pool.release_by_worker("w2")
    else:
        pool.requeue(item.id)
    assert future.result(SOON)


def test_reap_wakes_a_waiter(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance, waiting: Waiting
) -> None:
    enrol("w1"), enrol("w2", lease_seconds=10)
    pool.push("work")
    pool.claim("w2")
    future = waiting("w1")
    advance(11)
    store.workers.reap()
    assert future.result(SOON)


def test_delayed_item_that_is_due_wakes_a_waiter(
    pool: WorkPool, worker: WorkerRecord, advance: Advance, waiting: Waiting
) -> None:
    pool.push("later", delay=60)
    future = waiting("w1")
    advance(61)
    assert future.result(SOON)


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{place}/fleet.db"])
def test_delay_ends_by_itself_where_the_clock_runs(tmp_path: Path, url: str) -> None:
    with open_store(url.format(place=tmp_path)) as store:
        store.pool("papers").push("soon", delay=0.05)
        assert store.pool("papers").wait(seconds=LONG)


@pytest.mark.parametrize("status", ["terminating", "terminated", "lost"])
def test_worker_that_is_told_to_leave_wakes(
    store: Store, worker: WorkerRecord, waiting: Waiting, status: str
) -> None:
    future = waiting("w1")
    store.workers.update_status("w1", status)
    assert future.result(SOON) is False


def test_old_incarnation_wakes(
    store: Store, worker: WorkerRecord, enrol: Enrol, waiting: Waiting
) -> None:
    future = waiting(worker)
    enrol("w1")
    assert future.result(SOON) is False


def test_worker_that_has_to_leave_does_not_wait_for_work(
    store: Store, pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push("work")
    store.workers.update_status("w1", "terminating")
    assert not pool.wait("w1", seconds=LONG)


def test_paused_pool_is_no_reason_to_wake(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("work")
    pool.pause()
    assert not pool.wait("w1", seconds=0.01)


def test_resume_wakes_a_waiter(pool: WorkPool, worker: WorkerRecord, waiting: Waiting) -> None:
    pool.push("work")
    pool.pause()
    future = waiting("w1")
    pool.resume()
    assert future.result(SOON)


def test_pause_that_ends_wakes_a_waiter(
    pool: WorkPool, worker: WorkerRecord, advance: Advance, waiting: Waiting
) -> None:
    pool.push("work")
    pool.pause(60)
    future = waiting("w1")
    advance(61)
    assert future.result(SOON)


def test_work_of_another_pool_does_not_count(
    store: Store, pool: WorkPool, worker: WorkerRecord
) -> None:
    store.pool("other").push("work")
    assert not pool.wait("w1", seconds=0.01)


def test_unknown_worker_cannot_wait(pool: WorkPool) -> None:
    with pytest.raises(UnknownWorker):
        pool.wait("nobody", seconds=0.01)
