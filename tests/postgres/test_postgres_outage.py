"""Connections that break: every verb is repeated, and nothing is lost or done twice."""

from __future__ import annotations

import threading

import psycopg
import pytest
from servers import postgres

from sprat.core import model
from sprat.core.errors import StoreUnavailable
from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.postgres import connections
from sprat.store.postgres.connections import Session, Sessions
from sprat.store.store import Store


@pytest.fixture
def lose_reply(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Breaks the connection after the next calls are done, before their answers arrive."""
    left = [0]
    run = Sessions._with_patience

    def with_patience(self: Sessions, action):  # type: ignore[no-untyped-def]
        def lossy(link: Session, again: bool) -> object:
            answer = action(link, again)
            if left[0]:
                left[0] -= 1
                link.db.close()
                raise psycopg.OperationalError("the connection is lost")
            return answer

        return run(self, lossy)

    monkeypatch.setattr(Sessions, "_with_patience", with_patience)
    return left


@pytest.fixture
def worker(store: Store) -> model.WorkerRecord:
    return store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=600))


def test_a_repeated_push_stores_nothing_twice(pool: WorkPool, lose_reply: list[int]) -> None:
    lose_reply[0] = 2
    item_id = pool.push("paper")
    assert [item.id for item in pool.items()] == [item_id]


def test_a_repeated_claim_gets_the_same_items(
    pool: WorkPool, worker: model.WorkerRecord, lose_reply: list[int]
) -> None:
    pool.push_many(range(10))
    lose_reply[0] = 1
    first = pool.claim_many(worker, 4)
    assert [item.data for item in first] == [0, 1, 2, 3]
    assert [item.attempts for item in first] == [1, 1, 1, 1]
    assert pool.counts().claimed == 4
    lose_reply[0] = 1
    answer = pool.exchange(
        worker, settlements=[pool.completion(item, item.data) for item in first], claim=4
    )
    assert answer.settled == (True,) * 4
    assert [item.data for item in answer.items] == [4, 5, 6, 7]
    assert (pool.counts().done, pool.counts().claimed) == (4, 4)


@pytest.mark.parametrize("wanted", [4, 2, 5])
def test_a_claim_whose_answer_was_given_up_is_found_by_the_next(
    pool: WorkPool,
    worker: model.WorkerRecord,
    lose_reply: list[int],
    monkeypatch: pytest.MonkeyPatch,
    wanted: int,
) -> None:
    pool.push_many(range(10))
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", -1.0)
    lose_reply[0] = 1
    with pytest.raises(StoreUnavailable):
        pool.claim_many(worker, 4)
    assert pool.counts().claimed == 4
    found = pool.claim_many(worker, wanted)
    assert [item.data for item in found] == [0, 1, 2, 3][:wanted]
    assert [item.attempts for item in found] == [1] * len(found)
    assert pool.counts().claimed == len(found), "what was not asked for is handed back"
    assert [item.data for item in pool.claim_many(worker, 1)] == [len(found)]


def test_a_repeated_failure_is_charged_once(
    pool: WorkPool, worker: model.WorkerRecord, lose_reply: list[int]
) -> None:
    pool.push("paper")
    item = pool.claim(worker)
    assert item is not None
    lose_reply[0] = 1
    assert pool.fail(item, "no")
    assert (pool.get(item).attempts, pool.get(item).status) == (1, "pending")


def test_a_repeated_decision_is_found_again(
    store: Store, pool: WorkPool, lose_reply: list[int]
) -> None:
    decision = model.Decision(
        pool="papers",
        policy="fixed",
        direction="up",
        current=0,
        desired=2,
        reason="two are wanted",
        launch=2,
        max_workers=2,
    )
    lose_reply[0] = 1
    recorded = pool.record(decision, version=0)
    assert recorded is not None
    assert {w.worker_id for w in store.workers.list()} == set(recorded.launched)


def test_a_repeated_put_is_true_for_whoever_made_it(store: Store, lose_reply: list[int]) -> None:
    lose_reply[0] = 1
    assert store.backend.put("lease", "leader", '"me"', 0, None)
    lose_reply[0] = 1
    assert not store.backend.put("lease", "leader", '"you"', 0, None)


def test_cut_connections_are_made_anew(pool: WorkPool, mine: psycopg.Connection) -> None:
    for number in range(3):
        pool.push(number)
        mine.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'sprat'"
        )
    assert [item.data for item in pool.items()] == [0, 1, 2]


def test_a_restart_of_the_server_is_outlasted(server: postgres.Server) -> None:
    with open_store(server.url()) as store:
        pool = store.pool("papers")
        pushed = [pool.push("before")]
        for crash in ("fast", "immediate"):
            server.stop(crash)
            starting = threading.Timer(0.5, server.start)
            starting.start()
            pushed.append(pool.push(crash))
            starting.join()
        assert [item.id for item in pool.items()] == pushed


def test_a_waiter_outlasts_a_restart_and_hears_again(server: postgres.Server) -> None:
    with open_store(server.url()) as store, open_store(server.url()) as other:
        pool = store.pool("papers")
        worker = store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=600))
        woken: list[bool] = []
        waiter = threading.Thread(target=lambda: woken.append(pool.wait(worker, seconds=60)))
        waiter.start()
        server.stop("immediate")
        server.start()
        other.pool("papers").push("paper")
        waiter.join(60)
        assert woken == [True]
