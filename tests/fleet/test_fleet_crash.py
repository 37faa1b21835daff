"""Killed jobs, workers and fork servers: nothing is lost, nothing runs to its end twice."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from fleets import Fleet, eventually, is_alive, kill

from sprat.fleet import reaper

HEARTBEAT = 0.5
LEASE = 2 * HEARTBEAT


@pytest.fixture
def mortal(fleet: Fleet) -> Fleet:
    fleet.set(heartbeat_seconds=HEARTBEAT)
    return fleet


# -- kill -9 --------------------------------------------------------------------------------


def test_a_killed_workers_job_runs_again_at_once(
    mortal: Fleet, record_property: pytest.RecordProperty
) -> None:
    mortal.set(handler="jobs:slow_at_first", heartbeat_seconds=60)  # its lease helps nobody
    item = mortal.push()
    mortal.check()
    [[_, _, job, _]] = mortal.until("start")
    victim = mortal.worker_of(item)
    killed_at = time.time()
    kill(victim.pid)
    done = mortal.until_status(item, "done")
    [_, [_, attempt, _, started_at]] = mortal.happened("start")
    took = float(started_at) - killed_at
    record_property("kill_to_rerun_seconds", took)
    assert took < 1.0
    assert (attempt, done.result, done.attempts) == ("2", 2, 2)
    lost = mortal.store.workers.get(victim.worker_id)
    assert (lost.status, lost.reason) == ("lost", "ended by SIGKILL")
    assert not is_alive(int(job)), "a job dies with its worker"


def test_without_a_nest_it_runs_again_after_one_lease_and_a_pass(
    mortal: Fleet, record_property: pytest.RecordProperty
) -> None:
    mortal.set(handler="jobs:slow_at_first")
    item = mortal.push()
    mortal.check()
    mortal.until("start")
    for server in mortal.fork_servers():
        kill(server)
    killed_at = time.time()
    kill(mortal.worker_of(item).pid)
    mortal.until_gone()
    eventually(lambda: mortal.check().spawned)
    mortal.until_status(item, "done")
    took = float(mortal.happened("start")[1][3]) - killed_at
    record_property("kill_to_rerun_without_nest_seconds", took)
    assert took < LEASE + 3.0  # the pass, and a cold start on a busy machine


# -- slow, stuck, stopped -------------------------------------------------------------------


def test_a_job_that_holds_the_interpreter_is_not_taken_for_dead(mortal: Fleet) -> None:
    mortal.set(handler="jobs:hold_the_interpreter", isolation="process")
    item = mortal.push(seconds=3 * LEASE)
    mortal.check()
    mortal.until("start")
    reaped: list[str] = []
    while not mortal.happened("end"):  # reap as others would
        reaped += reaper.reap(mortal.store).workers
        time.sleep(0.01)
    assert reaped == []
    done = mortal.until_status(item, "done")
    assert (done.attempts, done.result) == (1, "held")


def test_in_the_worker_itself_neither_because_its_parent_sends_heartbeats(mortal: Fleet) -> None:
    mortal.set(handler="jobs:hold_the_interpreter", isolation="none")
    item = mortal.push(seconds=3 * LEASE)
    mortal.check()
    mortal.until("start")
    reaped: list[str] = []
    while not mortal.happened("end"):
        reaped += reaper.reap(mortal.store).workers
        time.sleep(0.01)
    assert reaped == []
    done = mortal.until_status(item, "done")
    assert (done.attempts, done.result) == (1, "held")


def test_late_result_of_a_stopped_worker_is_dropped(mortal: Fleet, tmp_path: Path) -> None:
    mortal.set(handler="jobs:wait_for_file", max_workers=1)
    item = mortal.push(file=str(tmp_path / "go"))
    mortal.check()
    mortal.until("start")
    stopped = mortal.worker_of(item)
    os.kill(stopped.pid, signal.SIGSTOP)
    eventually(lambda: reaper.reap(mortal.store).workers)
    assert mortal.item(item).status == "pending"

    (tmp_path / "go").touch()  # now its job ends, while nobody listens
    mortal.until("end")
    mortal.check()
    done = mortal.until_status(item, "done")
    assert done.claimed_by != stopped.worker_id

    os.kill(stopped.pid, signal.SIGCONT)
    eventually(lambda: not is_alive(stopped.pid))
    assert mortal.item(item) == done, "nothing of it has changed"
    assert mortal.store.workers.get(stopped.worker_id).status == "lost"
    assert len(mortal.happened("end")) == 2


def test_a_stopped_workers_job_is_ended_when_it_comes_back(mortal: Fleet, tmp_path: Path) -> None:
    mortal.set(handler="jobs:slow_at_first", max_workers=1)
    item = mortal.push()
    mortal.check()
    [[_, _, job, _]] = mortal.until("start")
    stopped = mortal.worker_of(item)
    os.kill(stopped.pid, signal.SIGSTOP)
    eventually(lambda: reaper.reap(mortal.store).workers)
    os.kill(stopped.pid, signal.SIGCONT)
    eventually(lambda: not is_alive(int(job)))
    mortal.check()
    assert mortal.until_status(item, "done").attempts == 2


# -- jobs that do harm ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("handler", "isolation"),
    [
        ("kill_the_worker", "process"),
        ("kill_itself", "none"),
        ("exit_at_once", "none"),
    ],
)
def test_a_job_that_kills_its_worker_starts_max_retries_times(
    mortal: Fleet, handler: str, isolation: str
) -> None:
    mortal.set(handler=f"jobs:{handler}", isolation=isolation, heartbeat_seconds=60)
    item = mortal.push(max_retries=3)
    mortal.check()
    poisoned = mortal.until_status(item, "poisoned")
    assert mortal.starts()[item] == poisoned.attempts == 3
    assert f"worker {poisoned.claimed_by} was lost" in poisoned.error


@pytest.mark.parametrize(
    ("handler", "isolation", "error"),
    [
        ("segfault", "process", "the job's process was ended by SIGSEGV without an answer"),
        ("exit_at_once", "process", "the job's process exited with code 7 without an answer"),
        ("kill_itself", "process", "the job's process was ended by SIGKILL without an answer"),
        ("exit_politely", "process", "SystemExit: enough of this"),
        ("exit_politely", "none", "SystemExit: enough of this"),
        ("cancel_itself", "process", "the job cancelled itself"),
        ("cancel_itself", "none", "the job cancelled itself"),
    ],
)
def test_a_job_that_ends_itself_fails_and_its_worker_lives(
    mortal: Fleet, handler: str, isolation: str, error: str
) -> None:
    mortal.set(handler=f"jobs:{handler}", isolation=isolation, max_workers=1)
    ids = [mortal.push(max_retries=1) for _ in range(2)]
    mortal.check()
    poisoned = [mortal.until_status(i, "poisoned") for i in ids]
    assert poisoned[0].error.startswith(error)
    assert poisoned[0].claimed_by == poisoned[1].claimed_by
    mortal.until_gone()
    assert mortal.store.workers.get(poisoned[0].claimed_by).status == "terminated"


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_a_job_out_of_time_is_stopped_with_all_it_started(mortal: Fleet, isolation: str) -> None:
    mortal.set(handler="jobs:start_others_and_sleep", isolation=isolation, timeout_seconds=0.5)
    item = mortal.push(max_retries=1)
    mortal.check()
    poisoned = mortal.until_status(item, "poisoned")
    assert poisoned.error == "stopped after 0.5 seconds"
    [[_, *others]] = mortal.happened("others")
    eventually(lambda: not any(is_alive(int(pid)) for pid in others))
    mortal.until_gone()
    assert mortal.store.workers.get(poisoned.claimed_by).status == "terminated"


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_a_command_out_of_time_is_stopped_with_all_it_started(
    mortal: Fleet, isolation: str
) -> None:
    script = f"sleep 600 & echo others x $! >> {mortal.log}; sleep 600"
    mortal.set(handler=None, command=["sh", "-c", script], isolation=isolation, timeout_seconds=0.5)
    item = mortal.push(max_retries=1)
    mortal.check()
    mortal.until_status(item, "poisoned")
    [[_, other]] = mortal.happened("others")
    eventually(lambda: not is_alive(int(other)))


def test_a_process_that_a_job_leaves_behind_holds_nobody_up(mortal: Fleet) -> None:
    mortal.set(handler="jobs:leave_another_behind")
    item = mortal.push()
    mortal.check()
    assert mortal.until_status(item, "done").result == "done"
    [[_, other]] = mortal.happened("others")
    eventually(lambda: not is_alive(int(other)))


@pytest.mark.parametrize(("isolation", "results"), [("process", [1, 1, 1]), ("none", [1, 2, 3])])
def test_each_job_in_a_child_finds_a_clean_world(
    mortal: Fleet, isolation: str, results: list[int]
) -> None:
    mortal.set(handler="jobs:remember", isolation=isolation, max_workers=1)
    ids = [mortal.push() for _ in range(3)]
    mortal.check()
    mortal.until_done(3)
    assert sorted(mortal.item(i).result for i in ids) == results


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_a_cancelled_job_is_stopped_within_a_heartbeat(mortal: Fleet, isolation: str) -> None:
    mortal.set(handler="jobs:start_others_and_sleep", isolation=isolation, max_workers=1)
    item = mortal.push()
    mortal.check()
    [[_, _, job, _]] = mortal.until("start")
    worker = mortal.worker_of(item)
    assert mortal.pool.cancel(item) == 1
    cancelled_at = time.monotonic()
    [[_, *others]] = mortal.happened("others")
    if isolation == "process":
        eventually(lambda: not is_alive(int(job)))
    eventually(lambda: not any(is_alive(int(pid)) for pid in others))
    assert time.monotonic() - cancelled_at < HEARTBEAT + 2.0
    mortal.until_gone()
    assert mortal.item(item).status == "cancelled"
    assert mortal.store.workers.get(worker.worker_id).status == "terminated"
