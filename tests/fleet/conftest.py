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
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where nests keep their locks
    fleet = Fleet(tmp_path, name)
    try:
        yield fleet
        if not fleet.may_stay:
            fleet.until_gone()
        check_counts(fleet.pool)
        check_file(tmp_path / "fleet.db")
        assert "Traceback" not in told(tmp_path)
    finally:
        fleet.end()
        fleet.close()
        print(told(tmp_path))


def told(place: Path) -> str:
    """What the nests and their workers had to say."""
    log = place / "nests.log"
    return log.read_text() if log.exists() else ""


def check_file(path: Path) -> None:
    db = apsw.Connection(str(path))
    try:
        assert db.execute("PRAGMA integrity_check").get == "ok"
    finally:
        db.close()
