"""The `fleet` fixture: a pool with real workers, and proof that none of them stays behind."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleets import MARKER, Fleet
from worlds import SHARED, WORLDS, check_counts

# Fleets work over every store; these tests prove it, and the others run over SQLite only.
EVERYWHERE = {"test_fleet_nine_steps", "test_fleet_crash", "test_fleet_burst", "test_fleet_push"}
STORES = [name for name in SHARED if name != "http"]  # there, fleets are the server's affair


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "fleet" in metafunc.fixturenames:
        stores = STORES if metafunc.module.__name__ in EVERYWHERE else ("sqlite",)
        metafunc.parametrize("fleet", stores, indirect=True)


@pytest.fixture
def fleet(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Fleet]:
    name = uuid.uuid4().hex
    monkeypatch.setenv(MARKER, name)  # every SPRAT_ variable reaches the workers
    monkeypatch.setenv("SPRAT_LOG", str(tmp_path / "servers.log"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where fork servers keep their locks
    world = WORLDS[request.param](tmp_path)
    fleet = Fleet(tmp_path, name, world.url)
    try:
        yield fleet
        if not fleet.may_stay:
            fleet.until_gone()
        check_counts(fleet.pool)
        world.check()
        assert "Traceback" not in told(tmp_path)
    finally:
        fleet.end()
        fleet.close()
        world.close()
        print(told(tmp_path))


def told(place: Path) -> str:
    """What the fork servers and their workers had to say."""
    log = place / "servers.log"
    return log.read_text() if log.exists() else ""
