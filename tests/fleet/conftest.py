"""The `fleet` fixture: a pool with real workers, and proof that none of them stays behind."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from fleets import MARKER, Fleet
from worlds import check_counts


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    name = uuid.uuid4().hex
    monkeypatch.setenv(MARKER, name)  # every SPRAT_ variable reaches the workers
    monkeypatch.setenv("SPRAT_LOG", str(tmp_path / "nests.log"))
    fleet = Fleet(tmp_path, name)
    try:
        yield fleet
        if not fleet.may_stay:
            fleet.until_gone()
        check_counts(fleet.pool)
        check_file(tmp_path / "fleet.db")
    finally:
        fleet.end()
        fleet.close()
        if (tmp_path / "nests.log").exists():
            print((tmp_path / "nests.log").read_text())


def check_file(path: Path) -> None:
    db = apsw.Connection(str(path))
    try:
        assert db.execute("PRAGMA integrity_check").get == "ok"
    finally:
        db.close()
