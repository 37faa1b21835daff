"""A store of schema version 2, and its clients: workers that are connected finish their jobs and
leave, and no worker of that version runs a job that names a task."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from sprat.core.errors import StoreMismatch
from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.sqlite import schema
from sprat.store.store import Store

LEASE = 1000.0
# The statements of version 2, as its clients prepared them.
PUSH = """
INSERT INTO work_pool (pool_name, status, max_retries, priority, tenant, grp, key, created_at,
                       ready_at, run_at, id, data)
VALUES ('papers', 'pending', 1, 0, '', '', ?2, ?3, ?3, NULL, ?1, '"work"')
"""
COUNT = "INSERT INTO pool_count VALUES ('papers', '', 3, 0, 0, 0, 0, 0, 0)"
REGISTER = """
INSERT INTO worker_registry (worker_id, status, host, pid, capabilities, pool_id, started_at,
    last_heartbeat, incarnation, lease_seconds, lease_until, metadata)
VALUES (?1, 'active', ?2, ?3, ?4, ?5, ?6, ?6, 1, ?7, ?6 + ?7, ?8)
ON CONFLICT DO UPDATE SET status = 'active', host = ?2, pid = ?3,
    capabilities = ?4, pool_id = coalesce(?5, pool_id), started_at = ?6, last_heartbeat = ?6,
    incarnation = incarnation + 1, lease_seconds = ?7, lease_until = ?6 + ?7, metadata = ?8,
    reason = NULL, ended_at = NULL, current_task_id = NULL
"""
RESERVE = """
INSERT INTO worker_registry (worker_id, status, pool_id, grp, capabilities, started_at,
    last_heartbeat, lease_seconds, lease_until)
VALUES (?, 'starting', ?, ?, ?, ?, ?, ?, ?)
"""
BEAT = """
UPDATE worker_registry SET last_heartbeat = ?2, lease_until = ?2 + lease_seconds,
       current_task_id = ?3, metadata = coalesce(?4, metadata)
WHERE worker_id = ?1
"""
CLAIM = """
UPDATE work_pool SET status = 'claimed', claimed_by = ?2, claimed_at = ?3, token = ?4,
       epoch = epoch + 1, attempts = attempts + 1, ahead = 0, room = NULL
WHERE seq = ?1
"""
COUNT_FIRST = """
UPDATE pool_count SET pending = pending - 1, claimed = claimed + 1
WHERE pool_name = ? AND grp = ''
"""
HELD = "SELECT seq FROM work_pool WHERE id = ? AND token = ? AND status = 'claimed'"
COMPLETE = """
UPDATE work_pool SET status = 'done', result = ?2, error = NULL, finished_at = ?3,
       attempts = attempts + (ahead > 0), ahead = 0, suspect = 0
WHERE seq = ?1
"""
COUNT_DONE = """
UPDATE pool_count SET claimed = claimed - 1, done = done + 1 WHERE pool_name = ? AND grp = ''
"""
PUT_BACK = """
UPDATE work_pool SET status = ?2, attempts = ?3, suspect = ?4, given_back = ?5,
       error = coalesce(?6, error), ready_at = ?7, run_at = ?8, finished_at = ?9,
       claimed_by = iif(?9 IS NULL, NULL, claimed_by), ahead = 0,
       last_token = coalesce(?10, last_token), last_outcome = coalesce(?11, last_outcome),
       token = NULL
WHERE seq = ?1
"""
COUNT_BACK = """
UPDATE pool_count SET claimed = claimed - 1, pending = pending + 1
WHERE pool_name = ? AND grp = ''
"""
MOVE = """
UPDATE worker_registry SET status = ?2, reason = coalesce(?3, reason), ended_at = ?4,
       current_task_id = iif(?4 IS NULL, current_task_id, NULL)
WHERE worker_id = ?1
"""
STATUS = "SELECT status FROM worker_registry WHERE worker_id = ?"
NEEDS = "SELECT value FROM meta WHERE name = 'needs'"


class Old:
    """A client of version 2 that made the store: three items, a worker with a claim, a launch."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        with monkeypatch.context() as before:
            before.setattr(schema, "VERSION", 2)
            before.setattr(schema, "NEEDS", 1)
            before.setattr(schema, "_raise_needs", lambda db: None)
            self.db = apsw.Connection(str(path))
            self.db.set_busy_timeout(10_000)
            schema.prepare(self.db, str(path))
        self.now: float = self.db.execute(
            "SELECT value + ? FROM meta WHERE name = 'clock_base'", (time.monotonic(),)
        ).get
        self.db.execute("INSERT INTO pool (name) VALUES ('papers')")
        for item_id, key in (("first", None), ("second", "k"), ("third", None)):
            self.db.execute(PUSH, (item_id, key, self.now))
        self.db.execute(COUNT)
        self.register("worker")
        launch = ("launch", "papers", "", "[]", self.now, self.now, LEASE, self.now + LEASE)
        self.db.execute(RESERVE, launch)
        self.claim("first")

    def register(self, worker_id: str) -> str:
        about = (worker_id, "host", 1, "[]", "papers", self.now, LEASE, "{}")
        self.db.execute(REGISTER, about)
        return str(self.db.execute(STATUS, (worker_id,)).get)

    def claim(self, item_id: str) -> None:
        seq = self.db.execute("SELECT seq FROM work_pool WHERE id = ?", (item_id,)).get
        self.db.execute(CLAIM, (seq, "worker", self.now, "token"))
        self.db.execute(COUNT_FIRST, ("papers",))

    def may_open(self) -> bool:
        return bool(self.db.execute(NEEDS).get <= 2)


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Old]:
    old = Old(tmp_path / "fleet.db", monkeypatch)
    yield old
    old.db.close()


def new_worker(worker_id: str) -> WorkerRegistration:
    return WorkerRegistration(worker_id=worker_id, pool_id="papers")


def opened(old: Old) -> Store:
    return open_store(f"sqlite:///{old.path}")


def test_items_of_the_version_before_keep_working(old: Old) -> None:
    with opened(old) as store:
        pool = store.pool("papers")
        assert [item.task for item in pool.items()] == [None, None, None]
        assert pool.push("work", key="k") == "second"
        enrolled = store.workers.register(new_worker("new"))
        item = pool.claim(enrolled)
        assert item is not None
        assert (item.id, item.task, item.transients, item.hold) == ("second", None, 0, None)
        assert pool.complete(item)
        assert pool.counts().done == 1


def test_workers_of_the_version_before_are_drained(old: Old) -> None:
    with opened(old) as store:
        worker, launch = store.workers.get("worker"), store.workers.get("launch")
    assert worker is not None
    assert launch is not None
    assert (worker.status, launch.status) == ("terminating", "terminated")
    assert "sprat was upgraded" in (worker.reason or "")
    assert "sprat was upgraded" in (launch.reason or "")


def test_worker_of_the_version_before_completes_what_it_holds_and_leaves(old: Old) -> None:
    with opened(old) as store:
        assert old.may_open()  # it does so after each fork
        old.db.execute(BEAT, ("worker", old.now, "first", None))
        assert old.db.execute(STATUS, ("worker",)).get == "terminating"
        seq = old.db.execute(HELD, ("first", "token")).get
        old.db.execute(COMPLETE, (seq, '"done"', old.now))
        old.db.execute(COUNT_DONE, ("papers",))
        old.db.execute(MOVE, ("worker", "terminated", "told to leave", old.now))
        assert store.pool("papers").get("first").result == "done"
        assert store.pool("papers").counts().done == 1
    opened(old).close()
    assert not old.may_open()


def test_worker_of_the_version_before_fails_what_it_holds(old: Old) -> None:
    with opened(old) as store:
        seq = old.db.execute(HELD, ("first", "token")).get
        given = ("pending", 1, 0, 0, "broken", old.now, None, None, "token", "fail")
        old.db.execute(PUT_BACK, (seq, *given))
        old.db.execute(COUNT_BACK, ("papers",))
        item = store.pool("papers").get("first")
        assert (item.status, item.error, item.hold) == ("pending", "broken", None)


@pytest.mark.parametrize("worker_id", ["another", "worker", "launch", "reserved"])
def test_worker_of_the_version_before_that_registers_has_to_leave(old: Old, worker_id: str) -> None:
    with opened(old) as store:
        reserved = ("reserved", "papers", "", "[]", old.now, old.now, LEASE, old.now + LEASE)
        old.db.execute(RESERVE, reserved)
        assert old.register(worker_id) == "terminated"
        found = store.workers.get(worker_id)
        assert found is not None
        assert found.reason == "sprat was upgraded: upgrade this worker"
        assert store.workers.register(new_worker(worker_id)).status == "active"
        assert store.workers.register(new_worker(worker_id)).status == "active"


def test_older_client_is_refused_when_no_worker_of_its_version_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.db"
    open_store(f"sqlite:///{path}").close()
    monkeypatch.setattr(schema, "VERSION", 2)
    with pytest.raises(StoreMismatch, match="upgrade sprat"):
        open_store(f"sqlite:///{path}")
