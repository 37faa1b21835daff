"""An idle worker in another process: it wakes soon, costs nothing, and is never deaf for good."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from processes import PATIENCE, Together, at_once, beside, hear
from worlds import World

from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool

WAKE_SECONDS = 0.25
IDLE_SECONDS = 2.0


def wait_and_tell(pipe: Connection, url: str) -> None:
    """Wait for work, say when it was seen, take it; and again, until the pipe is closed."""
    with open_store(url) as store:
        store.workers.register(WorkerRegistration(worker_id="idle", lease_seconds=3600))
        pool = store.pool("papers")
        pool.wait("idle", seconds=0)
        while True:
            pipe.send("waiting")
            while not pool.wait("idle", seconds=PATIENCE):
                pass
            seen_at = time.monotonic()
            item = pool.claim("idle")
            if item is None or item.data == "leave":
                return
            pool.complete(item)
            pipe.send(seen_at)


@pytest.fixture
def waiter(shared: World, shared_url: str) -> Iterator[Callable[[], float]]:
    """Pushes an item, and says how long it took until the waiter in the other process saw it."""
    pool = shared.open().pool("papers")
    process, pipe = beside(wait_and_tell, shared_url)

    def wake() -> float:
        assert hear(pipe) == "waiting"
        time.sleep(0.02)  # it is probably asleep by now; if not, it wakes all the sooner
        pushed_at = time.monotonic()
        pool.push("work")
        seen_at: float = hear(pipe)
        return seen_at - pushed_at

    yield wake
    hear(pipe)
    pool.push("leave")
    process.join(PATIENCE)
    assert process.exitcode == 0


@pytest.mark.alone
def test_waiter_sees_a_push_soon(waiter: Callable[[], float]) -> None:
    median = statistics.median(waiter() for _ in range(20))
    print(f"median of 20: {median * 1000:.2f} ms")
    assert median < WAKE_SECONDS


def idle(place: int, together: Together, url: str) -> float:
    """The share of a core that an idle waiter takes."""
    with open_store(url) as store:
        pool: WorkPool = store.pool("papers")
        pool.wait(seconds=0)
        before = time.process_time()
        assert not pool.wait(seconds=IDLE_SECONDS)
        return (time.process_time() - before) / IDLE_SECONDS


@pytest.mark.alone
def test_waiter_costs_next_to_nothing(shared_url: str) -> None:
    (share,) = at_once(1, idle, shared_url)
    print(f"{share:.2%} of a core")
    assert share < 0.02


def bell_of(world: World) -> Path:
    return Path(str(world.open().describe()["path"]) + "-bell")


def delete(bell: Path) -> None:
    bell.unlink()


def replace(bell: Path) -> None:
    other = bell.with_suffix(".other")
    other.touch()
    other.replace(bell)


@pytest.mark.alone
@pytest.mark.parametrize("shared", ["sqlite"], indirect=True)  # the others have no such file
@pytest.mark.parametrize("meddle", [delete, replace])
def test_waiter_whose_bell_is_gone_wakes_and_hears_again(
    shared: World, waiter: Callable[[], float], meddle: Callable[[Path], None]
) -> None:
    waiter()
    meddle(bell_of(shared))
    assert waiter() < 5.0  # it looks once a second, bell or no bell
    median = statistics.median(waiter() for _ in range(5))
    assert median < WAKE_SECONDS


def wait_with_many_files(place: int, together: Together, url: str) -> bool:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    with open_store(url) as store:
        seen = store.pool("papers").wait(seconds=0.01)
    return bool(held) and seen


def test_process_with_many_open_files_can_wait(shared_url: str) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2048:
        assert not os.environ.get("CI"), "CI has to allow 2048 open files"
        pytest.skip("this machine allows fewer than 2048 open files")
    assert at_once(1, wait_with_many_files, shared_url) == [False]
