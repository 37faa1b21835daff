"""Signals: the first drains, the second hands back; a fork server passes them on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from fleets import Fleet, eventually, is_alive, kill

from sprat.worker.signals import ONE_CAUSE_SECONDS
from sprat.worker.worker import LOOK_UP_SECONDS

each_isolation = pytest.mark.parametrize("isolation", ["process", "none"])


def run_one(fleet: Fleet, tmp_path: Path, **settings: object) -> str:
    fleet.set(handler="jobs:wait_for_file", max_workers=1, **settings)
    item = fleet.push(file=str(tmp_path / "go"))
    fleet.check()
    fleet.until("start")
    return item


def pause() -> None:
    """So long that the next signal is not taken for the echo of the last, and that whoever would
    act on the last has done so."""
    end = time.monotonic() + 2 * ONE_CAUSE_SECONDS + LOOK_UP_SECONDS
    eventually(lambda: time.monotonic() > end)


@each_isolation
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_drains(fleet: Fleet, tmp_path: Path, isolation: str, number: int) -> None:
    item = run_one(fleet, tmp_path, isolation=isolation)
    waiting = fleet.push(file=str(tmp_path / "go"))
    worker = fleet.worker_of(item)
    kill(worker.pid, number)
    pause()
    assert fleet.item(item).status == "claimed"
    (tmp_path / "go").touch()
    fleet.until_status(item, "done")
    fleet.until_gone()
    ended = fleet.store.workers.get(worker.worker_id)
    assert (ended.status, ended.reason) == ("terminated", "told to leave")
    assert fleet.item(waiting).status == "pending"


@each_isolation
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_hands_back(
    fleet: Fleet, tmp_path: Path, isolation: str, number: int
) -> None:
    item = run_one(fleet, tmp_path, isolation=isolation, heartbeat_seconds=60)
    worker = fleet.worker_of(item)
    kill(worker.pid, number)
    pause()
    kill(worker.pid, number)
    back = fleet.until_status(item, "pending", within=5)
    assert (back.attempts, back.given_back, back.run_at) == (0, 1, None)
    fleet.until_gone()
    assert fleet.store.workers.get(worker.worker_id).status == "terminated"
    (tmp_path / "go").touch()
    fleet.check()
    assert fleet.until_status(item, "done").attempts == 1


def test_a_signal_to_the_nest_drains_its_workers(fleet: Fleet, tmp_path: Path) -> None:
    fleet.set(handler="jobs:wait_for_file", max_workers=2, max_jobs=1)
    ids = [fleet.push(file=str(tmp_path / "go")) for _ in range(5)]
    fleet.check()
    fleet.until("start", 2)
    [server] = fleet.fork_servers()
    kill(server, signal.SIGTERM)
    pause()
    assert len(fleet.workers("active")) == 2
    (tmp_path / "go").touch()
    fleet.until_gone()
    assert sorted(fleet.item(i).status for i in ids) == ["done"] * 2 + ["pending"] * 3
    assert {w.status for w in fleet.workers()} == {"terminated"}


def test_two_signals_to_the_nest_hand_back(fleet: Fleet, tmp_path: Path) -> None:
    item = run_one(fleet, tmp_path)
    [server] = fleet.fork_servers()
    kill(server, signal.SIGTERM)
    pause()
    kill(server, signal.SIGTERM)
    assert fleet.until_status(item, "pending", within=5).attempts == 0


def test_a_signal_to_the_whole_group_is_one_signal(fleet: Fleet, tmp_path: Path) -> None:
    """A service manager tells every process, and the fork server passes it on: still a drain."""
    item = run_one(fleet, tmp_path)
    worker = fleet.worker_of(item)
    os.killpg(os.getpgid(worker.pid), signal.SIGTERM)
    pause()
    assert fleet.item(item).status == "claimed"
    (tmp_path / "go").touch()
    fleet.until_status(item, "done")


def test_idle_worker_leaves_at_the_first_signal(fleet: Fleet) -> None:
    fleet.set(idle_seconds=600)
    item = fleet.push()
    fleet.check()
    fleet.until_status(item, "done")
    [worker] = fleet.workers("active")
    kill(worker.pid, signal.SIGTERM)
    eventually(lambda: not is_alive(worker.pid), within=5)
    assert fleet.store.workers.get(worker.worker_id).status == "terminated"
