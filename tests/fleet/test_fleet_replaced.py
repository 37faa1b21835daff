"""Workers with old code or old settings finish their jobs, leave, and are replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleets import POOL, Fleet, eventually

from sprat.cli import main

WAITS = """
import os, time

def run(data):
    while not os.path.exists("go"):
        time.sleep(0.01)
    return "{word}"
"""


@pytest.fixture
def module(fleet: Fleet) -> Path:
    """The file of the pool's handler; its jobs wait for a file `go`."""
    path = fleet.place / "edited.py"
    path.write_text(WAITS.format(word="old"))
    fleet.set(directory=str(fleet.place), handler="edited:run", start_on_push=True, max_workers=2)
    return path


def test_an_edited_module_is_run_by_new_workers_when_the_running_jobs_are_done(
    fleet: Fleet, module: Path
) -> None:
    ids = [fleet.push() for _ in range(6)]
    eventually(lambda: fleet.pool.counts().claimed == 2)
    running = {i for i in ids if fleet.item(i).status == "claimed"}
    module.write_text(WAITS.format(word="much newer"))
    (fleet.place / "go").touch()
    fleet.until_done(6)
    assert {i for i in ids if fleet.item(i).result == "old"} == running
    assert {fleet.item(i).result for i in ids} == {"old", "much newer"}
    assert {fleet.item(i).attempts for i in ids} == {1}


def test_an_idle_worker_does_not_run_a_new_job_with_old_code(fleet: Fleet, module: Path) -> None:
    fleet.set(idle_seconds=30, max_workers=1)
    (fleet.place / "go").touch()
    fleet.until_status(fleet.push(), "done")
    module.write_text(WAITS.format(word="much newer"))
    second = fleet.until_status(fleet.push(), "done")
    assert second.result == "much newer"
    fleet.set(idle_seconds=0.1)
    fleet.until_status(fleet.push(), "done")


def test_fix_the_function_and_requeue_runs_the_new_code(fleet: Fleet, module: Path) -> None:
    """Workers that are still around when the function is fixed have imported the old one."""
    module.write_text("def run(data):\n    raise ValueError('a bug')\n")
    fleet.set(idle_seconds=20)
    ids = [fleet.push(max_retries=1) for _ in range(4)]
    for i in ids:
        fleet.until_status(i, "poisoned")
    module.write_text("def run(data):\n    return 'fixed'\n")
    assert main.main(["jobs", "requeue", "--all-poisoned", POOL, "--url", fleet.url]) == 0
    fleet.until_done(4)
    assert {fleet.item(i).result for i in ids} == {"fixed"}
    fleet.set(idle_seconds=0.1)
    fleet.until_status(fleet.push(), "done")


def test_changed_settings_replace_workers_that_are_there(fleet: Fleet) -> None:
    """A worker with other settings would run the next job as before."""
    fleet.set(handler="jobs:echo", start_on_push=True, idle_seconds=20, max_workers=1)
    first = fleet.until_status(fleet.push(seconds=0), "done")
    fleet.set(timeout_seconds=0.2, idle_seconds=0.3)
    late = fleet.until_status(fleet.push(seconds=60, max_retries=1), "poisoned")
    assert late.error == "stopped after 0.2 seconds"
    assert late.claimed_by != first.claimed_by
    left = fleet.store.workers.get(first.claimed_by)
    assert (left.status, left.reason) == ("terminated", "code or settings changed")


def test_a_running_job_is_finished_with_the_settings_that_it_began_with(
    fleet: Fleet, tmp_path: Path
) -> None:
    fleet.set(handler="jobs:wait_for_file", start_on_push=True, max_workers=1)
    item = fleet.push(file=str(tmp_path / "go"))
    fleet.until("start")
    fleet.set(handler="jobs:echo")
    second = fleet.push(say="new")
    (tmp_path / "go").touch()
    fleet.until_done(2)
    assert (fleet.item(item).result, fleet.item(item).attempts) == ("seen", 1)
    assert (fleet.item(second).result, fleet.item(second).attempts) == ("new", 1)
