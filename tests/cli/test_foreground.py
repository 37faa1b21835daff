"""A worker at the terminal, and a fleet that starts by itself: real processes, real signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sprat.core import model
from sprat.store.store import Store
from sprat.worker.signals import ONE_CAUSE_SECONDS

Run = Callable[..., "object"]
SLOW = """
import os, time

def slow(payload):
    open("started", "w").close()
    while not os.path.exists("go on"):
        time.sleep(0.02)
"""


@pytest.fixture(params=["none", "process"])
def worker(
    request: pytest.FixtureRequest, store: Store, place: Path
) -> Iterator[subprocess.Popen[str]]:
    """A foreground worker in the middle of a job that goes on until there is a file `go on`."""
    (place / "slowly.py").write_text(SLOW)
    os.mkfifo(place / "started")
    store.pool("numbers").configure(handler="slowly:slow", isolation=request.param)
    store.pool("numbers").push(1)
    command = ["work", "numbers", "--worker-id", "w1", "--idle", "60"]
    process = subprocess.Popen(
        [sys.executable, "-m", "sprat", *command], stderr=subprocess.PIPE, text=True
    )
    open(place / "started").close()  # waits for the job to open it
    with process:
        yield process
        (place / "go on").touch()
        process.kill()


def test_the_first_signal_finishes_the_job(
    worker: subprocess.Popen[str], store: Store, place: Path
) -> None:
    worker.send_signal(signal.SIGINT)
    assert worker.stderr
    assert "finishing the job, then leaving" in worker.stderr.readline()
    (place / "go on").touch()
    said = worker.communicate(timeout=30)[1]
    assert worker.returncode == 0
    assert "left (told to leave) after 1 job" in said
    assert store.pool("numbers").counts().done == 1


def test_the_second_signal_hands_it_back(worker: subprocess.Popen[str], store: Store) -> None:
    worker.send_signal(signal.SIGINT)
    assert worker.stderr
    worker.stderr.readline()
    time.sleep(2 * ONE_CAUSE_SECONDS)  # sooner, it would count as the same one
    worker.send_signal(signal.SIGINT)
    said = worker.communicate(timeout=30)[1]
    assert worker.returncode == 0
    assert "handing the job back" in said
    (item,) = store.pool("numbers").items()
    assert (item.status, item.attempts) == (model.PENDING, 0)


def test_pushed_work_is_done_while_watch_waits(process: Run, place: Path) -> None:
    """init, apply, push, watch, status: what docs/start.md tells, with workers that start by
    themselves."""
    assert process("init", "project").code == 0
    os.chdir("project")
    assert process("apply").code == 0
    assert process("push", "numbers", "--count", "8").code == 0
    watched = process("watch", "numbers", "--timeout", "30", "--json")
    assert (watched.code, watched.data["left"]) == (0, 0)
    (pool,) = process("status", "--json").data["pools"]
    assert (pool["done"], pool["poisoned"]) == (8, 0)
    assert "up 0 -> " in process("explain", "numbers").out
    process("workers", "drain", "--pool", "numbers")


def test_watch_fails_when_jobs_are_poisoned(process: Run, store: Store) -> None:
    pool = store.pool("numbers")
    pool.configure(handler="jobs:fail", start_on_push=True)
    pool.push_many([1, 2], max_retries=1, delay=2.0)  # or it is over before anybody watches
    answer = process("watch", "numbers", "--timeout", "30")
    assert (answer.code, answer.out) == (1, "")
    assert re.search(r"^0/2 done, .* 2 failed$", answer.err, re.MULTILINE)
    assert "`sprat jobs list numbers --status failed` tells why" in answer.err


def test_a_handler_that_went_away_is_explained(process: Run, store: Store, place: Path) -> None:
    pool = store.pool("numbers")
    pool.configure(handler="gone:f", start_on_push=True, max_workers=1)
    pool.push(1)
    for _ in range(100):
        out = " ".join(process("explain", "numbers").out.split())
        if "never came to work" in out:
            break
    assert "the handler gone:f cannot be imported: ModuleNotFoundError" in out
    pool.cancel(*[item.id for item in pool.items()])


def test_watch_draws_a_bar_on_a_terminal(store: Store) -> None:
    parent, terminal = os.openpty()
    command = [sys.executable, "-m", "sprat", "watch", "numbers"]
    done = subprocess.run(command, stderr=terminal, check=False, timeout=30)
    os.close(terminal)
    drawn = os.read(parent, 1 << 16).decode()
    os.close(parent)
    assert done.returncode == 0
    assert "[\033[32m########################\033[0m] nothing to wait for" in drawn
    assert drawn.endswith("\n")
