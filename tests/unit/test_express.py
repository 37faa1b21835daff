"""The commonest exchange goes the short way; what is special goes the long one, to the same end."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import sprat
from sprat.core.model import Settlement, WorkerRecord, WorkerRegistration
from sprat.store.pool import WorkPool
from sprat.store.sqlite.backend import SqliteBackend

SHORT = 6  # begin, look, complete, claim, count, commit


class Traced:
    """A pool on SQLite, one worker, and the statements that the last exchange ran."""

    def __init__(self, path: Path, *, sync_all: bool = False) -> None:
        self.backend = SqliteBackend(str(path), sync_all=sync_all)
        self.pool = WorkPool(self.backend, "p")
        about = WorkerRegistration(worker_id="w", lease_seconds=3600.0)
        self.worker: WorkerRecord = self.backend.register(about)
        self.statements: list[str] = []
        self.backend._connection.touch_at = float("inf")  # or the mark is in the count, at times

    def exchange(self, **what: object) -> sprat.core.model.Exchange:
        db = self.backend._connection._db
        assert db is not None
        self.statements.clear()
        db.exec_trace = self._note
        try:
            return self.pool.exchange(self.worker, **what)  # type: ignore[arg-type]
        finally:
            db.exec_trace = None

    def _note(self, cursor: object, statement: str, bindings: object) -> bool:
        self.statements.append(statement)
        return True


@pytest.fixture
def traced(tmp_path: Path) -> Traced:
    return Traced(tmp_path / "q.db")


def test_settling_one_job_and_claiming_the_next_is_six_statements(traced: Traced) -> None:
    traced.pool.push_many([1, 2, 3])
    (first,) = traced.exchange().items
    done = traced.pool.completion(first, {"pages": 3})
    (second,) = traced.exchange(settlements=[done]).items
    assert len(traced.statements) <= SHORT, traced.statements
    assert traced.pool.get(first).result == {"pages": 3}
    assert second == traced.pool.get(second)


@pytest.mark.parametrize("sync_all", [False, True])
def test_statistics_that_were_held_back_are_there_after_closing(
    tmp_path: Path, sync_all: bool
) -> None:
    traced = Traced(tmp_path / "q.db", sync_all=sync_all)
    traced.pool.push_many(range(4))
    settlements: list[Settlement] = []
    for _ in range(4):
        (item,) = traced.exchange(settlements=settlements).items
        settlements = [traced.pool.completion(item, seconds=2.0)]
    traced.backend.close()
    stats = WorkPool(SqliteBackend(str(tmp_path / "q.db")), "p").stats()
    assert (stats.arrivals, stats.starts, stats.finished) == (4, 4, 3)
    assert stats.run_mean == pytest.approx(2.0)


@pytest.mark.parametrize("special", ["tenant", "group", "delayed", "pool"])
def test_what_is_special_goes_the_long_way(traced: Traced, special: str) -> None:
    pool = traced.pool
    held = pool
    if special == "pool":
        held = WorkPool(traced.backend, "other")
    elif special == "tenant":
        pool.push("mine", tenant="t")
    elif special == "group":
        pool.push("mine", group="g")
    held.push("first")
    pool.push("next")
    item = held.claim(traced.worker)
    assert item is not None
    if special == "delayed":
        pool.push("due", delay=0.001)
        time.sleep(0.002)
    answer = traced.exchange(settlements=[held.completion(item)])
    assert len(traced.statements) > SHORT
    assert answer.settled == (True,)
    assert len(answer.items) == 1
    assert held.get(item).status == "done"
