"""What workers know of their surroundings, and what others can see of them."""

from __future__ import annotations

import time

import pytest
from fleets import Fleet

SECRET = "correct-horse-battery-staple"


def test_workers_get_only_the_variables_that_are_named(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", SECRET)
    monkeypatch.setenv("DATABASE_PASSWORD", SECRET)
    fleet.set(handler="jobs:environment", environment=["API_KEY"], start_on_push=True)
    item = fleet.push(names=["API_KEY", "DATABASE_PASSWORD", "HOME"])
    named, unnamed, usual = fleet.until_status(item, "done").result
    assert (named, unnamed) == (SECRET, None)
    assert usual


def test_nothing_secret_is_on_any_command_line(fleet: Fleet) -> None:
    """Everybody on the machine may read command lines: the URL may hold a password."""
    fleet.set(handler="jobs:environment", start_on_push=True)
    item = fleet.push(names=["SPRAT_URL"], secret=SECRET, seconds=0.3)
    seen: set[str] = set()
    while fleet.item(item).status != "done":
        seen.update(fleet.processes().values())
        time.sleep(0.005)
    assert seen
    assert not [line for line in seen if SECRET in line or "sqlite" in line]
    assert "fleet.db" in fleet.item(item).result[0]


def test_workers_are_in_a_session_of_their_own(fleet: Fleet) -> None:
    import os

    fleet.push(seconds=0.3)
    fleet.check()
    fleet.until("start")
    [worker] = fleet.workers("active")
    assert os.getsid(worker.pid) != os.getsid(0)
