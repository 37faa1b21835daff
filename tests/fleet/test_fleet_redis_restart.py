"""A fleet whose Redis server is killed: its workers come back by themselves."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleets import MARKER, Fleet
from servers.redis import RedisServer
from worlds import check_counts

JOBS = 60


@pytest.fixture
def server() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.stop()


@pytest.fixture
def crew(server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    name = uuid.uuid4().hex
    monkeypatch.setenv(MARKER, name)
    monkeypatch.setenv("SPRAT_LOG", str(tmp_path / "servers.log"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    fleet = Fleet(tmp_path, name, server.url)
    try:
        yield fleet
    finally:
        fleet.end()
        fleet.close()
        print((tmp_path / "servers.log").read_text())


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_kill_of_the_server_costs_no_job_and_needs_nobody(
    server: RedisServer, crew: Fleet, isolation: str
) -> None:
    crew.set(start_on_push=True, max_workers=3, isolation=isolation)
    crew.pool.push_many([crew.job(seconds=0.05) for _ in range(JOBS)])
    crew.until("start", 5)
    server.kill()
    time.sleep(0.3)  # long enough that every worker meets a closed door
    server.start()
    crew.until_done(JOBS)
    crew.until_gone()
    check_counts(crew.pool)
    assert set(crew.starts()) == {item.id for item in crew.pool.items(limit=JOBS)}
