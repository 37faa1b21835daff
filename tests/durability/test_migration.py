"""Schema versions: a store moves up once, and a client that does not fit is refused."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from processes import Together, at_once

from sprat.core.errors import StoreMismatch
from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.sqlite import schema
from sprat.store.store import Store

NOW = schema.VERSION
NEXT = NOW + 1
ADDITION = """
CREATE TABLE addition (at REAL);
SELECT 'an answer in the middle';
ALTER TABLE work_pool ADD COLUMN colour TEXT DEFAULT 'blue';
INSERT INTO addition VALUES (1.0);
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of today with one item."""
    path = tmp_path / "fleet.db"
    with open_store(f"sqlite:///{path}") as store:
        store.pool("papers").push("work")
    return path


def learn_next_version(monkeypatch: pytest.MonkeyPatch, migration: str = ADDITION) -> None:
    monkeypatch.setattr(schema, "VERSION", NEXT)
    monkeypatch.setattr(schema, "MIGRATIONS", {**schema.MIGRATIONS, NEXT: migration})


def opened(path: Path) -> Store:
    return open_store(f"sqlite:///{path}")


def look(path: Path, statement: str) -> object:
    db = apsw.Connection(str(path))
    try:
        return db.execute(statement).get
    finally:
        db.close()


def change(path: Path, statements: str) -> None:
    db = apsw.Connection(str(path))
    db.execute(statements).fetchall()
    db.close()


def open_and_push(place: int, together: Together, path: Path) -> str:
    together()
    with opened(path) as store:
        return store.pool("papers").push(place)


def test_many_openers_migrate_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn_next_version(monkeypatch)
    ids = at_once(8, open_and_push, path)
    assert len(set(ids)) == 8
    assert look(path, "PRAGMA user_version") == NEXT
    assert look(path, "SELECT count(*) FROM addition") == 1
    with opened(path) as store:
        assert store.pool("papers").counts().pending == 9
    assert look(path, "PRAGMA integrity_check") == "ok"


def test_client_that_is_at_work_goes_on_while_another_migrates(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as older:
        pool = older.pool("papers")
        older.workers.register(WorkerRegistration(worker_id="w1"))
        learn_next_version(monkeypatch)
        opened(path).close()
        item = pool.claim("w1")
        assert item is not None
        assert pool.complete(item, "done")
        pool.push("more")
        assert pool.counts().total == 2


def test_older_client_may_open_what_only_grew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        learn_next_version(newer)
        opened(path).close()
    with opened(path) as store:
        assert store.pool("papers").push("more")
    assert look(path, "PRAGMA user_version") == NEXT


def test_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        learn_next_version(newer, ADDITION + "INSERT INTO nowhere VALUES (1);")
        with pytest.raises(apsw.SQLError):
            opened(path)
    assert look(path, "PRAGMA user_version") == NOW
    assert look(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'addition'") == 0
    with opened(path) as store:
        assert store.pool("papers").size() == 1


def test_store_that_needs_a_newer_client_is_refused(path: Path) -> None:
    change(path, "PRAGMA user_version = 99; UPDATE meta SET value = 99 WHERE name = 'needs'")
    before = path.read_bytes()
    with pytest.raises(StoreMismatch) as caught:
        opened(path)
    sentence = str(caught.value)
    assert "99" in sentence
    assert str(NOW) in sentence
    assert sentence.endswith("upgrade sprat")
    assert path.read_bytes() == before


def test_newer_store_that_needs_no_newer_client_is_accepted(path: Path) -> None:
    change(path, "PRAGMA user_version = 99")
    with opened(path) as store:
        assert store.pool("papers").size() == 1


def test_store_that_is_too_old_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()
    monkeypatch.setattr(schema, "VERSION", NOW + 5)
    monkeypatch.setattr(schema, "OLDEST", NOW + 3)
    with pytest.raises(StoreMismatch, match="earlier release first"):
        opened(path)
    assert path.read_bytes() == before


def test_copy_of_a_store_is_a_store(path: Path, tmp_path: Path) -> None:
    """VACUUM INTO makes a copy that is not in WAL mode; opening it sets that right."""
    copy = tmp_path / "copy.db"
    change(path, f"VACUUM INTO '{copy}'")
    assert look(copy, "PRAGMA journal_mode") == "delete"
    with opened(copy) as store:
        assert store.pool("papers").size() == 1
        store.pool("papers").push("more")
    assert look(copy, "PRAGMA journal_mode") == "wal"
