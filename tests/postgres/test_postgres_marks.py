"""Leases after an outage: renewed once, before any process judges them, and without queueing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from patience import eventually
from processes import Together, at_once
from servers import postgres

from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.postgres import marks
from sprat.store.postgres.transaction import PostgresTransaction
from sprat.store.store import Store

LEASE = 100.0
BLOCKED = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%sprat.mark%'
"""


@pytest.fixture
def worker(store: Store) -> str:
    store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=LEASE))
    return "w1"


@pytest.fixture
def away(url: str, worker: str) -> None:
    """The lease of the worker ended while nothing reached the store."""
    postgres.outage(url, 2 * LEASE)


@pytest.fixture
def renewing(mine: psycopg.Connection, away: None) -> Iterator[psycopg.Connection]:
    """A process that is just renewing all leases: it has not committed yet."""
    mine.execute("SELECT 1 FROM sprat.mark FOR UPDATE")
    mine.execute(f"UPDATE sprat.worker_registry SET lease_until = sprat.clock() + {LEASE}")
    mine.execute("UPDATE sprat.mark SET at = sprat.clock()")
    yield mine
    mine.rollback()


def renewals(store: Store, worker_id: str = "w1") -> int:
    record = store.workers.get(worker_id)
    assert record is not None
    return record.renewals


def test_heartbeat_while_leases_are_renewed_is_a_sign_of_life(
    store: Store, url: str, away: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = PostgresTransaction.run

    def heartbeat_first(
        self: PostgresTransaction, statement: str, values: Sequence[Any] = ()
    ) -> Any:
        if statement == marks.LIVE:
            other.workers.heartbeat("w1")
        return look(self, statement, values)

    with open_store(url) as other:
        monkeypatch.setattr(PostgresTransaction, "run", heartbeat_first)
        assert store.workers.reap().workers == ()
    assert renewals(store) == 0


def test_reaper_waits_for_a_process_that_renews_leases(
    store: Store, url: str, renewing: psycopg.Connection
) -> None:
    lost: list[tuple[str, ...]] = []
    reaper = threading.Thread(target=lambda: lost.append(store.workers.reap().workers))
    reaper.start()
    watcher = postgres.control(url)
    eventually(lambda: (watcher.execute(BLOCKED).fetchone() or (0,))[0])
    renewing.commit()
    reaper.join(60)
    assert lost == [()]
    assert renewals(store) == 0, "it did not renew what was renewed already"


VERBS: dict[str, Callable[[Store], object]] = {
    "heartbeat": lambda store: store.workers.heartbeat("w2"),
    "claim": lambda store: store.pool("papers").claim("w2"),
    "register": lambda store: store.workers.register(WorkerRegistration(worker_id="w3")),
    "keep_alive": lambda store: store.backend.keep_alive(["w2"]),
}


@pytest.mark.parametrize("verb", VERBS)
def test_workers_do_not_wait_for_a_process_that_renews_leases(
    store: Store, pool: WorkPool, mine: psycopg.Connection, url: str, worker: str, verb: str
) -> None:
    store.workers.register(WorkerRegistration(worker_id="w2", lease_seconds=LEASE))
    pool.push("work")
    postgres.outage(url, 2 * LEASE)
    mine.execute("SELECT 1 FROM sprat.mark FOR UPDATE")
    VERBS[verb](store)  # would wait until the end of the test
    mine.rollback()
    assert store.workers.reap().workers == ()


def first_step(place: int, together: Together, url: str) -> tuple[str, ...]:
    with open_store(url) as store:
        together()
        if place % 3 == 0:
            return store.workers.reap().workers
        if place % 3 == 1:
            store.backend.touch()
        else:
            store.workers.heartbeat(f"w{place}")
        return ()


def test_processes_that_come_back_together_renew_once(store: Store, url: str) -> None:
    for number in range(9):
        store.workers.register(WorkerRegistration(worker_id=f"w{number}", lease_seconds=LEASE))
    postgres.outage(url, 2 * LEASE)
    assert at_once(9, first_step, url) == [()] * 9
    assert {renewals(store, f"w{number}") for number in (0, 1, 3, 4, 6, 7)} == {1}


def test_transaction_of_the_caller_does_not_keep_the_mark(
    store: Store, pool: WorkPool, url: str, mine: psycopg.Connection, worker: str
) -> None:
    pool.push("work")
    item = pool.claim(worker)
    assert item is not None
    postgres.outage(url, 1.0)
    assert pool.complete(item, connection=mine)
    postgres.control(url).execute("SELECT 1 FROM sprat.mark FOR UPDATE NOWAIT")
    mine.commit()


def test_claims_note_that_the_store_works(
    store: Store, pool: WorkPool, url: str, worker: str
) -> None:
    pool.push_many([1, 2, 3])
    with open_store(url) as fresh:  # a process that has not claimed before
        postgres.outage(url, 10.0)
        assert fresh.pool("papers").claim(worker) is not None
    row = postgres.control(url).execute("SELECT sprat.clock() - at FROM sprat.mark").fetchone()
    assert row is not None
    assert row[0] < 5


def test_restarted_server_gives_every_worker_a_fresh_lease(server: postgres.Server) -> None:
    with open_store(server.url()) as store:
        before = store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=600))
        server.stop("immediate")
        server.start()
        store.backend.touch()
        after = store.workers.get("w1")
        assert after is not None
        assert after.renewals == 1
        assert after.lease_until > before.lease_until
        store.backend.touch()
        assert renewals(store) == 1, "a restart is seen once"
