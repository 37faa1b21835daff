"""Paths that name no store of ours: one clear sentence, and nothing there is changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from processes import Together, at_once

from sprat.core.errors import SpratError, StoreMismatch
from sprat.store.open_store import open_store

NOBODY = 65534


def foreign(path: Path, statements: str) -> None:
    db = apsw.Connection(str(path))
    db.execute(statements).fetchall()
    db.close()


def database_of_another_program(path: Path) -> None:
    foreign(path, "CREATE TABLE recipes (name); INSERT INTO recipes VALUES ('bouillabaisse')")


def database_with_a_version(path: Path) -> None:
    foreign(path, "CREATE TABLE recipes (name); PRAGMA user_version = 1")


def database_with_an_owner(path: Path) -> None:
    foreign(path, "PRAGMA application_id = 252006673")


def text(path: Path) -> None:
    path.write_text("a shopping list\n")


def long_text(path: Path) -> None:
    path.write_text("a very long shopping list\n" * 1000)


def directory(path: Path) -> None:
    path.mkdir()


def nothing_in_a_missing_directory(path: Path) -> None:
    path.symlink_to(path.parent / "missing" / "fleet.db")


def nothing_below_a_file(path: Path) -> None:
    (path.parent / "file").write_text("")
    path.symlink_to(path.parent / "file" / "fleet.db")


PLACES: dict[Callable[[Path], None], str] = {
    database_of_another_program: "of another program",
    database_with_a_version: "of another program",
    database_with_an_owner: "of another program",
    text: "is not an SQLite database",
    long_text: "is not an SQLite database",
    directory: "is a directory",
    nothing_in_a_missing_directory: "does not exist",
    nothing_below_a_file: "Not a directory",
}


def contents(place: Path) -> dict[str, str]:
    """Every file with its hash, every directory with none."""
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in place.rglob("*")
    }


def refusal(path: Path) -> str:
    with pytest.raises(SpratError) as caught:
        open_store(f"sqlite:///{path}")
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert str(path) in sentence
    return sentence


@pytest.mark.parametrize("make", PLACES, ids=lambda make: make.__name__)
def test_what_is_no_store_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "fleet.db"
    make(path)
    before = contents(tmp_path)
    assert PLACES[make] in refusal(path)
    assert contents(tmp_path) == before


def test_foreign_database_in_wal_mode_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    foreign(path, "PRAGMA journal_mode = wal; CREATE TABLE recipes (name)")
    before = contents(tmp_path)
    with pytest.raises(StoreMismatch):
        open_store(f"sqlite:///{path}")
    assert contents(tmp_path) == before


def test_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "fleet.db").touch()
    with open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        assert store.pool("papers").push("work")


def open_as_nobody(place: int, together: Together, path: Path) -> str:
    os.seteuid(NOBODY)
    try:
        return refusal(path)
    finally:
        os.seteuid(0)


@pytest.fixture
def open_to_all(tmp_path: Path) -> Path:
    """A directory that anybody can reach."""
    if os.geteuid() != 0:
        pytest.skip("only root can become nobody")
    for place in (tmp_path, *tmp_path.parents):
        if place.stat().st_uid == 0 and not place.stat().st_mode & 0o001:
            place.chmod(place.stat().st_mode | 0o011)
    return tmp_path


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_file_of_somebody_else_is_refused(open_to_all: Path, mode: int) -> None:
    path = open_to_all / "fleet.db"
    with open_store(f"sqlite:///{path}") as store:
        store.pool("papers").push("work")
    path.chmod(mode)
    before = contents(open_to_all)
    (sentence,) = at_once(1, open_as_nobody, path)
    assert "Permission denied" in sentence
    assert contents(open_to_all) == before


def test_directory_of_somebody_else_is_refused(open_to_all: Path) -> None:
    (sentence,) = at_once(1, open_as_nobody, open_to_all / "new.db")
    assert "Permission denied" in sentence
    assert contents(open_to_all) == {}


# -- what a store leaves on the disk ------------------------------------------------------------


def modes_of_files(place: int, together: Together, path: Path) -> dict[str, int]:
    os.umask(0)
    with open_store(f"sqlite:///{path}") as store:
        store.pool("papers").push("work")
        store.pool("empty").wait(seconds=0)
        return {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    (modes,) = at_once(1, modes_of_files, tmp_path / "fleet.db")
    assert modes == dict.fromkeys(
        ["fleet.db", "fleet.db-wal", "fleet.db-shm", "fleet.db-bell"], 0o600
    )
