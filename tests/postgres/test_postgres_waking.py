"""What wakes a waiter, and what the claims of many who were woken cost."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from sprat.core.model import WorkerRegistration
from sprat.store.pool import WorkPool
from sprat.store.store import Store

SOON = 20.0  # real seconds within which a notification must come
LOCK = "SELECT xmax::text FROM sprat.worker_registry WHERE worker_id = 'w1'"


@pytest.fixture
def worker(store: Store) -> str:
    store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=1000.0))
    return "w1"


def test_a_claim_that_finds_nothing_writes_nothing(
    pool: WorkPool, worker: str, mine: psycopg.Connection
) -> None:
    mine.autocommit = True
    pool.push("later", delay=1000.0)
    assert pool.claim(worker) is None
    assert mine.execute(LOCK).fetchone() == ("0",), "nobody has locked the worker's row"
    pool.push("now")
    assert pool.claim(worker) is not None
    assert mine.execute(LOCK).fetchone() != ("0",)


@pytest.mark.parametrize(
    ("push", "call"),
    [
        (lambda pool: pool.push("plain"), "papers ready"),
        (lambda pool: pool.push("later", delay=60), "papers"),
        (lambda pool: pool.push("special", group="gpu"), "papers"),
        (lambda pool: (pool.pause(), pool.push("while paused")), "papers"),
    ],
)
def test_only_work_that_anybody_can_take_is_called_out(
    pool: WorkPool, mine: psycopg.Connection, push: Callable[[WorkPool], object], call: str
) -> None:
    pool.configure(max_workers=3)
    assert not pool.wait(seconds=0)  # from now on the pool knows that somebody listens
    mine.autocommit = True
    mine.execute('LISTEN "sprat.bell"')
    push(pool)
    pool.push("the last", delay=60)
    heard = [one.payload for one in mine.notifies(timeout=SOON, stop_after=2)]
    assert heard[0] == call


def test_statistics_come_after_the_start_of_a_job_and_when_its_worker_waits(
    pool: WorkPool, worker: str, mine: psycopg.Connection
) -> None:
    mine.autocommit = True
    pool.push("one")
    item = pool.claim(worker)
    assert item is not None
    assert _noted(mine) == ["arrive"], "the claim did not wait for them"
    assert pool.complete(item)
    assert not pool.wait(seconds=0.1)
    assert _noted(mine) == ["arrive", "done", "run", "wait"]


def test_statistics_of_a_long_job_come_with_its_heartbeat(
    store: Store, pool: WorkPool, worker: str, mine: psycopg.Connection
) -> None:
    mine.autocommit = True
    pool.push("one")
    assert pool.claim(worker) is not None
    store.workers.heartbeat(worker)
    assert _noted(mine) == ["arrive", "wait"]


def _noted(mine: psycopg.Connection) -> list[str]:
    return [row[0] for row in mine.execute("SELECT kind FROM sprat.pool_stats ORDER BY kind")]
