"""Tasks from the command line: pushing to them, moving them, and workers that know them or not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import eventually

import sprat as api
from sprat.core import model
from sprat.store.store import Store

Run = Callable[..., Any]
WORK = [sys.executable, "-m", "sprat", "work", "sums"]
SUMS = """
import sprat

@sprat.task(pool="sums", start_on_push=False, idle_seconds=0.2)
def add(a, b=1):
    return a + b
"""
MORE = """
@sprat.task(pool="sums", start_on_push=False, idle_seconds=0.2)
def double(n):
    return 2 * n
"""


@pytest.fixture
def sums(place: Path) -> Iterator[Store]:
    """A store with a pool `sums`, set up by a program that pushed `add(1)`."""
    declare(place, SUMS, "add.push(1)")
    with api.open_store(f"sqlite:///{place}/sprat.db") as store:
        yield store


def declare(place: Path, module: str, push: str) -> None:
    """Write the module and run a program that pushes to its tasks."""
    (place / "sums.py").write_text(module)
    program = f"import sums; sums.{push}"
    subprocess.run([sys.executable, "-c", program], cwd=place, check=True, timeout=60)


def finished(pool: str, store: Store) -> dict[str, Any]:
    return {item.id: item.result for item in store.pool(pool).items(status=model.DONE)}


def test_a_payload_pushed_to_a_tasks_pool_is_its_arguments(process: Run, sums: Store) -> None:
    pushed = process("push", "sums", '{"a": 3, "b": 4}').out.strip()
    assert process("work", "sums", "--idle", "0").code == 0
    assert finished("sums", sums)[pushed] == 7


def test_a_trigger_that_runs_sprat_push_calls_the_task(
    process: Run, sums: Store, place: Path
) -> None:
    (place / "sprat.yml").write_text(
        "triggers:\n  - {name: nightly, type: cron, schedule: '@daily', command: "
        f'[{sys.executable}, -m, sprat, push, sums, \'{{"a": 20, "b": 22}}\']}}\n'
    )
    applied = process("apply")
    assert applied.code == 0, applied.err
    fired = process("triggers", "fire", "nightly")
    assert fired.code == 0, fired.err
    eventually(lambda: sums.pool("sums").size() == 2)
    assert process("work", "sums", "--idle", "0").code == 0
    assert sorted(finished("sums", sums).values()) == [2, 42]


def test_a_pool_of_several_tasks_needs_the_name_of_one(
    process: Run, sums: Store, place: Path
) -> None:
    declare(place, SUMS + MORE, "double.push(1)")
    unnamed = process("push", "sums", '{"n": 3}')
    assert unnamed.code == 2
    assert "name one with --task (sums:add, sums:double)" in unnamed.err
    unknown = process("push", "sums", '{"n": 3}', "--task", "sums:half")
    assert unknown.code == 2
    named = process("push", "sums", '{"n": 3}', "--task", "sums:double").out.strip()
    assert process("work", "sums", "--idle", "0").code == 0
    assert finished("sums", sums)[named] == 6


def test_move_lets_waiting_jobs_run_in_the_new_directory(
    process: Run, sums: Store, place: Path
) -> None:
    there = place / "moved"
    there.mkdir()
    missing = process("move", "sums", str(there))
    assert missing.code == 2
    assert f"would be in {there}/sums.py, which does not exist" in missing.err
    shutil.move(place / "sums.py", there / "sums.py")
    moved = process("move", "sums", str(there), "--json")
    assert (moved.code, moved.data["waiting"]) == (0, 1)
    assert process("work", "sums", "--idle", "0").code == 0
    assert list(finished("sums", sums).values()) == [2]


def test_a_worker_that_does_not_know_a_task_leaves_the_job_to_one_that_does(
    sums: Store, place: Path
) -> None:
    """Two hosts with other versions of the code: the old one has no `double`."""
    declare(place, SUMS + MORE, "double.push(21)")
    old = place / "old"
    old.mkdir()
    (old / "sums.py").write_text(SUMS)
    pool = sums.pool("sums")
    [job] = [item for item in pool.items() if item.task == "sums:double"]
    command = [*WORK, "--idle", "60"]
    with subprocess.Popen(command, env={**os.environ, "SPRAT_DIRECTORY": str(old)}) as ignorant:
        parked = eventually(lambda: (item := pool.get(job.id)).hold and item)
        assert (parked.status, parked.attempts) == (model.PENDING, 0)
        assert "sums has no double" in parked.hold
        eventually(lambda: pool.observe().parked == {"sums:double": 1})
        with subprocess.Popen(command) as knowing:
            eventually(lambda: pool.get(job.id).status == model.DONE)
            knowing.terminate()
        ignorant.terminate()
    done = pool.get(job.id)
    assert (done.result, done.attempts, done.hold) == (42, 1, None)
    assert pool.observe().parked == {}


def test_a_foreground_worker_starts_itself_again_with_edited_code(sums: Store, place: Path) -> None:
    pool = sums.pool("sums")
    command = [*WORK, "--idle", "60"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as worker:
        eventually(lambda: pool.counts().done == 1)
        (place / "sums.py").write_text(SUMS.replace("a + b", "100 * a"))
        second = pool.push({"a": 2}, task="sums:add")
        eventually(lambda: pool.get(second).status == model.DONE)
        assert worker.poll() is None, "it is the same process"
        worker.send_signal(signal.SIGTERM)
        said = worker.communicate(timeout=30)[1]
    assert pool.get(second).result == 200
    assert "starts again: code or settings changed" in said
    assert worker.returncode == 0


REFUSED = """
import os, time

def run(payload):
    open("started", "w").close()
    while not os.path.exists("go on"):
        time.sleep(0.01)
    open("ended", "w").close()
"""


def test_a_refused_completion_is_not_reported_as_done(store: Store, place: Path) -> None:
    """The worker was stopped for longer than its lease, and its job was taken away."""
    (place / "slowly.py").write_text(REFUSED)
    pool = store.pool("numbers")
    pool.configure(handler="slowly:run", isolation="process", heartbeat_seconds=0.5)
    item = pool.push(1)
    command = [*WORK[:-1], "numbers", "--max-jobs", "1", "--json", "--worker-id", "w1"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as worker:
        eventually((place / "started").exists)
        worker.send_signal(signal.SIGSTOP)
        (place / "go on").touch()
        eventually((place / "ended").exists)
        eventually(lambda: store.workers.reap("numbers").workers == ("w1",))
        pool.pause()
        worker.send_signal(signal.SIGCONT)
        out, said = worker.communicate(timeout=30)
    assert worker.returncode == 1, said
    assert '"refused": 1' in out
    assert f"job {item} attempt 1/3 done, but refused: the claim was lost" in said
    assert pool.get(item).status == model.PENDING
