"""A push starts the fleet, the fleet keeps itself going, and anybody heals it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from fleets import Fleet, eventually, is_alive, kill, parent_of

from sprat.core.model import WorkerRecord


@pytest.fixture
def starting(fleet: Fleet) -> Fleet:
    fleet.set(start_on_push=True)
    return fleet


def test_push_starts_the_fleet_and_does_not_wait_for_it(
    starting: Fleet, tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    starting.set(handler="jobs:wait_for_file")
    pushed_at = time.time()
    began = time.monotonic()
    item = starting.push(file=str(tmp_path / "go"))
    took = time.monotonic() - began
    assert took < 0.5  # and the job still waits for its file
    [[_, _, _, started_at]] = starting.until("start")
    record_property("push_seconds", took)
    record_property("push_to_start_seconds", float(started_at) - pushed_at)
    assert starting.item(item).status == "claimed"
    (tmp_path / "go").touch()
    starting.until_done(1)


def test_a_burst_of_single_pushes_starts_few_fork_servers(starting: Fleet) -> None:
    """However slowly they come: workers that wait for the next one need no other fork server."""
    starting.set(max_workers=4, isolation="none", idle_seconds=3, heartbeat_seconds=30)
    fork_servers: set[int] = set()
    for n in range(1000):
        starting.push(say=n)
        if not n % 50:
            fork_servers.update(starting.fork_servers())
    while starting.pool.counts().done < 1000:
        fork_servers.update(starting.fork_servers())
    assert set(starting.starts().values()) == {1}
    assert len(fork_servers) <= 8
    decided = starting.pool.decisions(limit=1000)
    assert sum(len(d.launched) for d in decided) <= 20


def test_a_push_that_needs_nobody_starts_nobody(starting: Fleet) -> None:
    starting.set(idle_seconds=5)
    first = starting.push()
    starting.until_status(first, "done")
    [server] = starting.fork_servers()
    second = starting.push()
    starting.until_status(second, "done")
    assert starting.fork_servers() == [server]
    assert len(starting.workers()) == 1
    kill(starting.workers()[0].pid, signal.SIGTERM)


def test_a_worker_that_leaves_while_work_remains_causes_the_next(starting: Fleet) -> None:
    starting.set(max_jobs=1, max_workers=1)
    ids = [starting.push() for _ in range(5)]
    starting.until_done(5)
    assert len({starting.item(i).claimed_by for i in ids}) == 5


def test_a_killed_fleet_is_healed_by_the_next_check(starting: Fleet) -> None:
    starting.set(handler="jobs:slow_when_first_claimed", heartbeat_seconds=0.5, max_workers=3)
    ids = [starting.push() for _ in range(3)]
    starting.until("start", 3)
    fork_servers = starting.fork_servers()
    pids = [w.pid for w in starting.workers("active")]
    for pid in fork_servers:
        kill(pid)
    for pid in pids:
        kill(pid)
    starting.until_gone()
    checked = eventually(lambda: (c := starting.check()).spawned and c)
    assert checked.reaped
    starting.until_done(3)
    assert [starting.item(i).result for i in ids] == [2, 2, 2]


def test_workers_outlive_their_nest_and_start_another(starting: Fleet, tmp_path: Path) -> None:
    """Work remains, and the one who would have carried on is dead."""
    starting.set(handler="jobs:wait_for_file", max_jobs=1, max_workers=1)
    starting.push(file=str(tmp_path / "go"))
    starting.until("start")
    starting.push(file=str(tmp_path / "go"))
    for server in starting.fork_servers():
        kill(server)
    [worker] = starting.workers("active")
    eventually(lambda: parent_of(worker.pid) not in starting.processes())
    (tmp_path / "go").touch()
    starting.until_done(2)
    assert set(starting.starts().values()) == {1}


def test_a_nest_that_dies_just_after_its_last_worker_left_is_followed(
    starting: Fleet, tmp_path: Path
) -> None:
    """Its worker saw it alive and relied on it; it is killed before it has noticed."""
    starting.set(handler="jobs:wait_for_file", max_jobs=1, max_workers=1)
    starting.push(file=str(tmp_path / "go"))
    starting.until("start")
    [worker] = starting.workers("active")
    server = parent_of(worker.pid)
    kill(server, signal.SIGSTOP)
    starting.push(file=str(tmp_path / "go"))
    (tmp_path / "go").touch()
    eventually(lambda: not is_alive(worker.pid))
    kill(server)
    starting.until_done(2)
    assert set(starting.starts().values()) == {1}


def test_a_nest_that_was_told_to_leave_and_is_killed_is_not_followed(
    starting: Fleet, tmp_path: Path
) -> None:
    """As a service manager stops what does not stop by itself."""
    starting.set(handler="jobs:wait_for_file", max_jobs=1, max_workers=1)
    ids = [starting.push(file=str(tmp_path / "go")) for _ in range(2)]
    starting.until("start")
    [worker] = starting.workers("active")
    os.killpg(os.getpgid(worker.pid), signal.SIGTERM)
    kill(parent_of(worker.pid))
    (tmp_path / "go").touch()
    starting.until_gone()
    assert sorted(starting.item(i).status for i in ids) == ["done", "pending"]


def test_a_push_survives_a_fleet_that_cannot_be_started(
    starting: Fleet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = starting.place / "missing" / "log"
    with monkeypatch.context() as patch:
        patch.setenv("SPRAT_LOG", str(log))
        item = starting.push()
    assert starting.item(item).status == "pending"
    why = f"SPRAT_LOG: {log} cannot be written: No such file or directory"
    assert f"no workers were started for papers: {why}" in caplog.text
    starting.push()  # no pass is on its way, and this one knows
    starting.until_done(2)


def test_a_program_that_ignores_its_children_can_push(starting: Fleet) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        item = starting.push()
    finally:
        signal.signal(signal.SIGCHLD, before)
    starting.until_status(item, "done")


def test_a_fleet_with_a_minimum_stays_and_does_not_flutter(starting: Fleet) -> None:
    starting.set(min_workers=2, max_workers=4, idle_seconds=0.05)
    starting.check()
    eventually(lambda: len(starting.workers("active")) == 2)
    for n in range(12):
        starting.push(say=n)
    starting.until_done(12)
    residents = eventually(lambda: steady(starting))
    assert len(residents) == 2
    starting.set(min_workers=0)
    for worker in residents:
        kill(worker.pid, signal.SIGTERM)


def steady(fleet: Fleet) -> list[WorkerRecord]:
    """The workers, if they are the same for ten times as long as anybody idles."""
    before = fleet.workers("starting", "active")
    end = time.monotonic() + 0.5
    eventually(lambda: time.monotonic() > end)
    after = fleet.workers("starting", "active")
    return after if [w.worker_id for w in before] == [w.worker_id for w in after] else []


def test_work_that_nobody_may_take_is_not_looked_at_all_the_time(
    starting: Fleet, tmp_path: Path
) -> None:
    """A tenant at its limit: the item is ready, and yet nobody gets it."""
    starting.set(tenant_limit=1, max_workers=2, idle_seconds=1.0, isolation="none")
    starting.set(handler="jobs:wait_for_file")
    go = tmp_path / "go"
    for file, tenant in ((go, "a"), (go, "a"), (tmp_path, "b")):
        starting.pool.push(starting.job(file=str(file)), tenant=tenant)
    starting.until("end")
    [idle] = eventually(lambda: [w for w in starting.workers("active") if not w.claims])
    used = 0.0
    while starting.store.workers.get(idle.worker_id).status == "active":
        used = max(used, cpu_seconds(idle.pid))
        time.sleep(0.01)
    assert starting.pool.counts().done == 1
    assert used < 0.25, "a second of looking is no waiting"
    go.touch()
    starting.until_done(3)


def cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0  # it has just left
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_as_many_workers_appear_as_a_tenants_limit_lets_work(starting: Fleet) -> None:
    starting.set(max_workers=8, tenant_limit=2)
    jobs = [starting.job(seconds=0.2) for _ in range(10)]
    starting.pool.push_many(jobs, tenant="acme")
    starting.until_done(10)
    starting.until_gone()
    assert len(starting.workers()) == 2
