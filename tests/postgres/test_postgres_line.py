"""Calls that go to the server without a cursor: what they send, and what an interruption leaves."""

from __future__ import annotations

import signal
from types import FrameType

import psycopg
import pytest

from sprat import open_store
from sprat.core.errors import UnknownItem
from sprat.core.model import WorkerRegistration
from sprat.store.pool import WorkPool
from sprat.store.postgres.libpq import LibpqConnection
from sprat.store.store import Store


class Interrupted(Exception):
    pass


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted


def test_a_call_that_no_socket_takes_at_once_arrives(store: Store, pool: WorkPool) -> None:
    store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=1000.0))
    ids = pool.push_many(list(range(16)))
    result = "sprat " * 170_000
    done = [pool.completion(item, result) for item in pool.claim_many("w1", 16)]
    assert pool.exchange("w1", settlements=done, claim=0).settled == (True,) * 16
    assert {pool.get(one).result for one in ids} == {result}


def test_the_same_call_is_prepared_once_and_goes_on_working(pool: WorkPool) -> None:
    ids = [pool.push({"n": n, "name": "Jürgen €"}) for n in range(12)]
    assert [pool.get(one).data for one in ids] == [{"n": n, "name": "Jürgen €"} for n in range(12)]


def test_a_call_that_the_server_forgot_is_sent_again(pool: WorkPool) -> None:
    for n in range(12):
        pool.cancel(pool.push(n))
    with pytest.raises(UnknownItem):  # rolled back: psycopg has the server forget
        pool.cancel("no such item")
    pool.push(12)
    assert pool.counts().pending == 1


def test_what_the_server_forgot_in_part_is_prepared_under_other_names(
    mine: psycopg.Connection,
) -> None:
    line = LibpqConnection(mine)
    statements = [f"SELECT {n}" for n in range(3)]

    def often() -> list[object]:
        return [line.call(one, ()) for one in statements for _ in range(10)]

    before = often()
    mine.execute("DEALLOCATE sprat_0")
    mine.commit()
    assert often() == before == often()


def test_a_text_that_the_clients_encoding_has_otherwise_is_kept(url: str, pool: WorkPool) -> None:
    with open_store(f"{url}{'&' if '?' in url else '?'}client_encoding=LATIN1") as other:
        item_id = other.pool("papers").push("x", tenant="Jürgen")
    assert pool.get(item_id).tenant == "Jürgen"


def test_an_interrupted_push_leaves_the_store_usable(
    pool: WorkPool, mine: psycopg.Connection
) -> None:
    pool.push("before")
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        mine.execute("LOCK TABLE sprat.work_pool")
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Interrupted):
            pool.push("while the table is locked")
        mine.rollback()
        assert pool.get(pool.push("after")).data == "after"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
