"""A store of schema version 1 moves up once; workers of that version settle what they hold, and
leave. The old client here is the statements that it sends."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from patience import eventually
from processes import Together, at_once
from psycopg import errors

from sprat.core.errors import StoreMismatch
from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.postgres import schema
from sprat.store.postgres.transaction import Names

FUNCTIONS = Path(__file__).with_name("version_1.sql").read_text()
TABLES = ("schema.sql", "lanes.sql")  # neither has changed since
EXCHANGE = "SELECT * FROM sprat.exchange($1, $2, 1, $3, $4, NULL, NULL, NULL, $5, $6, 2, false)"
REGISTER = """
INSERT INTO sprat.worker_registry (worker_id, status, pool_id, started_at, last_heartbeat,
    incarnation, lease_seconds, lease_until)
VALUES ($1, $2, 'papers', sprat.clock(), sprat.clock(), 1, 600, sprat.clock() + 600)
"""
# A failure, as version 1 writes it.
PUT_BACK = """
UPDATE sprat.work_pool SET status = 'pending', attempts = 1, error = 'no', ready_at = sprat.clock(),
    claimed_by = NULL, token = NULL, last_token = $2, last_outcome = 'fail'
WHERE id = $1 AND token = $2 AND status = 'claimed'
RETURNING sprat.count('papers', '', 1, 0, 0, -1, 0, 0, 0)
"""
LEAVE = """
UPDATE sprat.worker_registry SET status = 'terminated', ended_at = sprat.clock()
WHERE worker_id = $1 RETURNING 1
"""


class OldClient:
    """A client of version 1: one connection, with prepared statements."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.schema = url.rpartition("=")[2]
        self.names = Names(self.schema)
        self.db = psycopg.connect(url.partition("?")[0], autocommit=True)

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = psycopg.RawCursor(self.db)
        cursor.execute(self.names[statement], values, prepare=True)
        return cursor.fetchall() if cursor.description else []

    def push(self, item_id: str) -> None:
        self.run("SELECT sprat.push_one('papers', $1, '1', 3, 0)", item_id)

    def claim(self, worker: str, n: int = 1) -> list[tuple[str, str]]:
        """Ids and tokens."""
        rows = self.run(EXCHANGE, "papers", worker, None, None, n, f"{worker}-")
        return [(row[5], row[14]) for row in rows[1:]]

    def complete(self, item_id: str, token: str) -> bool:
        (row,) = self.run(EXCHANGE, "papers", "w1", [item_id], [token], 0, "")
        return bool(row[1] == [1])

    def status(self, worker: str) -> object:
        statement = "SELECT status, reason FROM sprat.worker_registry WHERE worker_id = $1"
        return self.run(statement, worker)[0]


@pytest.fixture
def old(url: str) -> Iterator[OldClient]:
    """A client of version 1 with a store that it made: three items, a worker and a launch."""
    client = OldClient(f"{url}?schema=old_{uuid.uuid4().hex}")
    db, names = client.db, client.names
    db.execute(f"CREATE SCHEMA {client.schema}")
    for text in (*(schema._text(file) for file in TABLES), FUNCTIONS):
        db.execute(names[text])
    psycopg.RawCursor(db).execute(names[schema.SET_META], ("1", "1"))
    for item_id in ("one", "two", "three"):
        client.push(item_id)
    client.run(REGISTER, "w1", "active")
    client.run(REGISTER, "w2", "starting")
    yield client
    db.execute(f"DROP SCHEMA {client.schema} CASCADE")
    db.close()


def test_old_worker_settles_what_it_holds_and_leaves(old: OldClient) -> None:
    done, failed = [old.claim("w1")[0] for _ in range(2)]
    with open_store(old.url) as store:
        assert old.complete(*done)
        assert old.complete(*done), "the same settle again is success again"
        assert old.run(PUT_BACK, *failed)
        assert old.claim("w1") == [], "it takes no more: it would ignore an item's task"
        assert old.run(LEAVE, "w1") == [(1,)]
        pool = store.pool("papers")
        assert (pool.counts().done, pool.counts().pending) == (1, 2)
        store.workers.register(WorkerRegistration(worker_id="new"))
        items = pool.claim_many("new", 5)
        assert [(item.id, item.task, item.attempts) for item in items] == [
            ("two", None, 2),
            ("three", None, 1),
        ]


def test_workers_of_the_old_version_are_drained(old: OldClient) -> None:
    with open_store(old.url) as store:
        workers = {worker.worker_id: worker for worker in store.workers.list()}
        assert {name: one.status for name, one in workers.items()} == {
            "w1": "terminating",
            "w2": "terminated",
        }
        for worker in workers.values():
            assert worker.reason is not None
            assert worker.reason.startswith("sprat was upgraded: ")


def test_old_client_can_still_push(old: OldClient) -> None:
    with open_store(old.url) as store:
        old.push("four")
        assert [item.id for item in store.pool("papers").items()][-1] == "four"


def test_old_client_is_refused(old: OldClient, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(old.url).close()
    monkeypatch.setattr(schema, "VERSION", 1)
    with pytest.raises(StoreMismatch, match=r"knows version 2; .* upgrade sprat"):
        open_store(old.url)


def open_and_push(place: int, together: Together, url: str) -> str:
    together()
    with open_store(url) as store:
        return store.pool("papers").push(place, task="t")


def test_many_openers_migrate_once(old: OldClient) -> None:
    assert len(set(at_once(4, open_and_push, old.url))) == 4
    with open_store(old.url) as store:
        tasks = [item.task for item in store.pool("papers").items()]
        assert tasks == [None, None, None, "t", "t", "t", "t"]


def _work(client: OldClient, rounds: list[int], stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            client.push(uuid.uuid4().hex)
            for item in client.claim("w1"):
                client.complete(*item)
        except errors.DeadlockDetected:  # version 1 tries again, too
            continue
        rounds.append(1)


def test_migration_gets_through_while_old_clients_work(old: OldClient) -> None:
    stop = threading.Event()
    rounds: list[list[int]] = [[], [], []]
    others = [OldClient(old.url) for _ in rounds]
    threads = [
        threading.Thread(target=_work, args=(client, done, stop))
        for client, done in zip(others, rounds, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: all(rounds))
        with open_store(old.url) as store:
            before = [len(done) for done in rounds]
            eventually(lambda: all(len(d) > n for d, n in zip(rounds, before, strict=True)))
            assert old.status("w1") == (
                "terminating",
                "sprat was upgraded: a worker of the new version takes over",
            )
            assert store.pool("papers").push("new", task="t")
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
        for client in others:
            client.db.close()
