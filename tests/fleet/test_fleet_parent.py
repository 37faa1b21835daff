"""Heartbeats of a parent process, and of workers without one that look after each other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fleets import POOL, Fleet, eventually, is_alive, kill
from processes import beside, hear

from sprat.fleet import reaper
from sprat.store.open_store import open_store
from sprat.store.store import Store
from sprat.worker.processor import load
from sprat.worker.worker import Worker

HEARTBEAT = 0.5
LEASE = 2 * HEARTBEAT


@pytest.fixture
def mortal(fleet: Fleet) -> Fleet:
    fleet.set(heartbeat_seconds=HEARTBEAT, max_workers=1)
    return fleet


def reap_until(fleet: Fleet, is_over: Any) -> list[str]:
    reaped: list[str] = []
    end = time.monotonic() + 30
    while not is_over() and time.monotonic() < end:
        reaped += reaper.reap(fleet.store).workers
        time.sleep(0.01)
    return reaped


def test_a_stopped_worker_gets_no_heartbeats_from_its_parent(mortal: Fleet) -> None:
    """Its job holds the interpreter in the same process, so it is stopped too."""
    mortal.set(handler="jobs:slow_when_first_claimed", isolation="none")
    item = mortal.push()
    mortal.check()
    mortal.until("start")
    stopped = mortal.worker_of(item)
    os.kill(stopped.pid, signal.SIGSTOP)
    reaped = reap_until(mortal, lambda: mortal.item(item).status == "pending")
    assert reaped == [stopped.worker_id]
    kill(stopped.pid)
    mortal.check()
    assert mortal.until_status(item, "done").result == 2


def test_a_slow_import_is_not_taken_for_a_failed_launch(mortal: Fleet) -> None:
    """It takes longer than the lease of the reservation; the importing process is alive."""
    (mortal.place / "slow_import.py").write_text(
        f"import time\ntime.sleep({3 * LEASE})\ndef run(data):\n    return 'at last'\n"
    )
    mortal.set(directory=str(mortal.place), handler="slow_import:run")
    item = mortal.push()
    mortal.check()
    assert reap_until(mortal, lambda: mortal.item(item).status == "done") == []
    assert mortal.item(item).result == "at last"
    assert mortal.pool.observe().launch_failures == 0


def test_a_foreground_worker_takes_over_the_job_of_a_killed_peer(mortal: Fleet) -> None:
    """No fork server is there, and no pass is run: the other `sprat work` reaps while it waits."""
    mortal.set(handler="jobs:slow_when_first_claimed", start_on_push=False)
    command = [sys.executable, "-m", "sprat", "work", POOL, "--idle", "60", "--url", mortal.url]
    item = mortal.push()
    with subprocess.Popen(command) as first:
        mortal.until("start")
        with subprocess.Popen(command) as second:
            eventually(lambda: len(mortal.workers("active")) == 2)
            killed_at = time.monotonic()
            first.kill()
            done = mortal.until_status(item, "done")
            took = time.monotonic() - killed_at
            assert done.result == 2
            assert took < LEASE + 2.0
            second.terminate()
    assert second.returncode == 0
    assert done.claimed_by not in {w.worker_id for w in mortal.workers("lost")}


class SlowHeartbeat:
    """A backend whose heartbeats wait until a file is there."""

    def __init__(self, backend: Any, file: Path) -> None:
        self._backend = backend
        self._file = file

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._backend, verb)

    def heartbeat(self, *args: Any, **kwargs: Any) -> Any:
        self._file.with_suffix(".asked").touch()
        while not self._file.exists():
            time.sleep(0.01)
        return self._backend.heartbeat(*args, **kwargs)


def work_with_slow_heartbeats(pipe: Any, url: str, file: Path) -> None:
    store = open_store(url)
    settings = store.pool(POOL).state().settings
    slow = Store(SlowHeartbeat(store.backend, file), store.url)  # type: ignore[arg-type]
    pipe.send(Worker(slow, POOL, load(settings), settings=settings, worker_id="w1").run())


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_a_job_that_ends_while_a_heartbeat_is_blocked_is_settled(
    mortal: Fleet, isolation: str
) -> None:
    """The heartbeat takes longer than the lease, and no process has declared the worker dead."""
    mortal.set(handler="jobs:wait_for_file", isolation=isolation, idle_seconds=0.1)
    go, unblock = mortal.place / "go", mortal.place / "unblock"
    item = mortal.push(file=str(go))
    process, pipe = beside(work_with_slow_heartbeats, mortal.url, unblock)
    eventually(unblock.with_suffix(".asked").exists)
    blocked_at = time.monotonic()
    go.touch()
    mortal.until("end")
    eventually(lambda: time.monotonic() > blocked_at + 1.5 * LEASE)
    unblock.touch()
    report = hear(pipe)
    process.join()
    assert (report.jobs, report.refused) == (1, 0)
    done = mortal.item(item)
    assert (done.status, done.attempts, done.result) == ("done", 1, "seen")
    assert not is_alive(int(mortal.happened("start")[0][2])) or isolation == "none"
