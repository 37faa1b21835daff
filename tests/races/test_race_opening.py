"""Eight processes open a store that does not exist yet: all succeed, and it is one store."""

from __future__ import annotations

from pathlib import Path

import apsw
from processes import Together, at_once

from sprat.store.open_store import open_store
from sprat.store.sqlite import schema

PROCESSES = 8
ROUNDS = 30


def open_and_push(place: int, together: Together, directory: Path) -> None:
    for number in range(ROUNDS):
        together()
        with open_store(f"sqlite:///{directory}/{number}.db") as store:
            store.pool("papers").push(place)


def test_new_file_is_created_once(tmp_path: Path) -> None:
    at_once(PROCESSES, open_and_push, tmp_path)
    for number in range(ROUNDS):
        path = tmp_path / f"{number}.db"
        with open_store(f"sqlite:///{path}") as store:
            pushed = sorted(item.data for item in store.pool("papers").items())
        assert pushed == list(range(PROCESSES))
        db = apsw.Connection(str(path))
        assert db.pragma("journal_mode") == "wal"
        assert db.pragma("user_version") == schema.VERSION
        assert db.pragma("integrity_check") == "ok"
        db.close()


def open_and_close(place: int, together: Together, url: str) -> list[str]:
    """Without a moment's pause, so that somebody is always the last to leave, or the first."""
    together()
    ids: list[str] = []
    for _ in range(ROUNDS):
        with open_store(url) as store:
            ids.append(store.pool("papers").push(place))
    return ids


def test_coming_and_going_loses_nothing(shared_url: str) -> None:
    logs = at_once(PROCESSES, open_and_close, shared_url)
    with open_store(shared_url) as store:
        stored = {item.id for item in store.pool("papers").items(limit=1000)}
    assert stored == {item_id for ids in logs for item_id in ids}
