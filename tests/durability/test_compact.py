"""Compacting the SQLite file while other processes work: they wait, and lose nothing."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from patience import eventually
from processes import beside, hear

from sprat.core.model import WorkerRegistration
from sprat.fleet import reaper
from sprat.store.open_store import open_store
from sprat.store.sqlite.backend import SqliteBackend
from sprat.store.sqlite.connection import Connection as SqliteConnection
from sprat.store.store import Store

ROUNDS = 20


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/fleet.db"


@pytest.mark.alone
def test_workers_and_reapers_go_on_while_the_file_is_compacted(url: str) -> None:
    with open_store(url) as store:
        store.pool("p").configure(keep_cancelled_seconds=0)
        working = [beside(_work, url, f"w{n}") for n in range(2)]
        reaping = beside(_reap, url)
        for _, pipe in (*working, reaping):
            assert hear(pipe) == "ready"
        for _ in range(ROUNDS):
            _fill_and_compact(store)
        for _, pipe in (*working, reaping):
            pipe.send("enough")
        done = [int(hear(pipe)) for _, pipe in working]
        assert hear(reaping[1]) == 0
        for process, _ in (*working, reaping):
            process.join()
        assert all(done)
        assert store.pool("p").counts().done == sum(done)
        assert store.pool("p").counts().claimed == 0


def _fill_and_compact(store: Store) -> None:
    pool = store.pool("p")
    pool.cancel(*pool.push_many(["x" * 1000] * 500, backlog=True))
    pool.push_many(range(5))
    pool.purge()
    sizes = store.compact()
    assert sizes is not None
    assert sizes[1] < sizes[0]


def _work(pipe: Connection, url: str, worker_id: str) -> None:
    with open_store(url) as store:
        pool = store.pool("p")
        me = store.workers.register(
            WorkerRegistration(worker_id=worker_id, pool_id="p", lease_seconds=2.0)
        )
        pipe.send("ready")
        done = 0
        while pool.size() or not pipe.poll():
            assert store.workers.heartbeat(me).status == "active"
            item = pool.claim(me)
            done += item is not None and pool.complete(item)
        pipe.send(done)


def _reap(pipe: Connection, url: str) -> None:
    with open_store(url) as store:
        pipe.send("ready")
        lost = 0
        while not pipe.poll(0.01):
            lost += len(reaper.reap(store).workers)
        pipe.send(lost)


def test_a_reader_in_the_middle_does_not_stop_it(url: str) -> None:
    with open_store(url) as store, open_store(url) as other:
        pool = store.pool("p")
        pool.configure(keep_cancelled_seconds=0)
        pool.cancel(*pool.push_many(["x" * 1000] * 500))
        pool.purge()
        assert other.pool("p").counts().total == 0
        before, after = store.compact() or (0, 0)
        assert 0 < after < before / 4
        assert other.pool("p").push("goes on")
        assert pool.size() == 1


def test_no_lease_is_judged_until_the_workers_could_write_again(url: str) -> None:
    with open_store(url) as store, open_store(url) as other:
        ours, theirs = _connection(store), _connection(other)
        fair: list[bool] = []

        def look(cursor: object, statement: str, bindings: object) -> bool:
            if statement.startswith(("VACUUM", "PRAGMA wal_checkpoint")):
                fair.append(theirs.read(theirs.patience.is_fair))
            return True

        assert ours._db is not None
        ours._db.exec_trace = look
        store.compact()
        assert fair == [False, False]
        eventually(lambda: theirs.read(theirs.patience.is_fair), within=5.0)


def _connection(store: Store) -> SqliteConnection:
    assert isinstance(store.backend, SqliteBackend)
    return store.backend._connection
