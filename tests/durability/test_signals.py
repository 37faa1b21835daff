"""A signal handler may raise anywhere, also in the middle of a verb: the store stays usable."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import sprat
from sprat.core.model import WorkerRegistration

SIGNALS = 400


class Interrupted(Exception):
    """What the handler raises."""


@pytest.fixture
def alarms() -> Iterator[None]:
    def handler(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


def interrupted_at(seconds: float, store: sprat.Store) -> None:
    pool = store.pool("p")
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while True:
            pool.push({})
            item = pool.claim("w")
            assert item is not None
            pool.complete(item.id)
    except Interrupted:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


@pytest.mark.usefixtures("alarms")
def test_a_handler_that_raises_leaves_the_store_unlocked_and_whole(tmp_path: Path) -> None:
    store = sprat.open_store(f"sqlite:///{tmp_path}/q.db")
    store.workers.register(WorkerRegistration(worker_id="w"))
    for number in range(SIGNALS):
        interrupted_at(0.0001 + number % 97 / 97_000, store)
    counted: list[int] = []
    looker = threading.Thread(target=lambda: counted.append(store.pool("p").size()), daemon=True)
    looker.start()
    looker.join(20.0)
    assert counted, "a verb waits for a lock that nobody holds any more"
    with sprat.open_store(f"sqlite:///{tmp_path}/q.db") as other:
        assert other.pool("p").push({}), "the file is locked by a transaction that nobody ends"
