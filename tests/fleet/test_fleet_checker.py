"""The checker and the reaper: one pass, run by anybody, any number at the same time."""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

import pytest
from fleets import POOL, Fleet, eventually

from sprat.core.model import PoolSettings, WorkerRegistration
from sprat.fleet import checker, reaper
from sprat.fleet.launcher import Launcher
from sprat.scaling import queue_depth
from sprat.store.open_store import open_store
from sprat.worker.processor import load
from sprat.worker.worker import Worker

TABLE = [  # pending, active, idle, max -> spawn
    ((10, 0, 0, 3), 3),
    ((2, 0, 0, 3), 2),
    ((5, 3, 3, 10), 2),
    ((5, 3, 0, 10), 5),
    ((100, 12, 0, 10), 0),
    ((0, 0, 0, 10), 0),
]
each_row = pytest.mark.parametrize(("row", "spawn"), TABLE, ids=str)


class Nowhere(Launcher):
    """Starts nothing, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def launch(self, url: str, pool: str, settings: PoolSettings, worker_ids: Any) -> None:
        self.asked += worker_ids


class Broken(Launcher):
    def launch(self, url: str, pool: str, settings: PoolSettings, worker_ids: Any) -> None:
        raise OSError("no more processes")


def enrol(fleet: Fleet, worker_id: str, pool: str | None = POOL) -> None:
    fleet.store.workers.register(
        WorkerRegistration(worker_id=worker_id, pool_id=pool, lease_seconds=600)
    )


# -- sizing ---------------------------------------------------------------------------------


@each_row
def test_sizing_is_that_of_the_table(row: tuple[int, int, int, int], spawn: int) -> None:
    pending, active, idle, maximum = row
    assert (
        queue_depth.wanted(ready=pending, idle=idle, starting=0, active=active, maximum=maximum)
        == spawn
    )


@each_row
def test_a_pass_spawns_what_the_table_says(
    fleet: Fleet, row: tuple[int, int, int, int], spawn: int
) -> None:
    pending, active, idle, maximum = row
    for n in range(active):
        enrol(fleet, f"w{n}")
    for n in range(active - idle):
        fleet.push()
        assert fleet.pool.claim(f"w{n}")
    fleet.pool.push_many([fleet.job()] * pending)
    launcher = Nowhere()
    checked = fleet.check(max_workers=maximum, launcher=launcher)
    assert (checked.spawned, len(launcher.asked)) == (spawn, spawn)
    assert tuple(launcher.asked) == checked.spawned_ids
    assert (checked.queue_depth, checked.active_workers) == (pending, active)
    assert len(fleet.workers("starting")) == spawn


def test_only_this_pools_workers_count(fleet: Fleet) -> None:
    enrol(fleet, "other", pool="theses")
    enrol(fleet, "free", pool=None)
    fleet.pool.push_many([fleet.job()] * 4)
    checked = fleet.check(max_workers=3, launcher=Nowhere())
    assert (checked.spawned, checked.active_workers) == (3, 0)


def test_a_second_pass_counts_those_that_are_starting(fleet: Fleet) -> None:
    fleet.pool.push_many([fleet.job()] * 4)
    assert fleet.check(max_workers=10, launcher=Nowhere()).spawned == 4
    assert fleet.check(max_workers=10, launcher=Nowhere()).spawned == 0


def test_dry_run_changes_nothing(fleet: Fleet) -> None:
    fleet.pool.push_many([fleet.job()] * 4)
    checked = fleet.check(dry_run=True)
    assert checked.spawned == 4
    assert (fleet.workers(), fleet.pool.decisions()) == ([], [])


def test_a_paused_pool_gets_no_workers(fleet: Fleet) -> None:
    fleet.push()
    fleet.pool.pause()
    checked = fleet.check(launcher=Nowhere())
    assert (checked.spawned, "paused" in checked.reason) == (0, True)


def test_a_pass_that_cannot_launch_frees_its_slots_and_says_why(fleet: Fleet) -> None:
    fleet.pool.push_many([fleet.job()] * 3)
    with pytest.raises(OSError, match="no more processes"):
        fleet.check(launcher=Broken())
    assert fleet.workers("starting") == []
    assert {w.reason for w in fleet.workers()} == {"not launched: no more processes"}
    assert fleet.pool.observe().launch_failures == 1, "one failure, however many it was to start"


# -- twenty at once -------------------------------------------------------------------------


def _check_from_a_barrier(url: str, barrier: Any, answers: Any) -> None:
    store = open_store(url)
    barrier.wait()
    answers.put(checker.check(store, POOL).spawned)


def test_twenty_checkers_at_once_never_exceed_the_maximum(fleet: Fleet) -> None:
    fleet.set(max_workers=7, max_jobs=1)
    fleet.pool.push_many([fleet.job(seconds=0.1)] * 40)
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(21), context.Queue()
    twenty = [
        context.Process(target=_check_from_a_barrier, args=(fleet.url, barrier, answers))
        for _ in range(20)
    ]
    for one in twenty:
        one.start()
    barrier.wait()
    most = 0
    while fleet.pool.counts().done < 40:
        live = len(fleet.workers("starting", "active"))
        assert live <= 7
        most = max(most, live)
        time.sleep(0.001)
    assert sum(answers.get(timeout=30) for _ in twenty) == 7
    for one in twenty:
        one.join()
    assert most == 7
    assert set(fleet.starts().values()) == {1}
    assert all(d.desired <= 7 for d in fleet.pool.decisions(limit=1000))


# -- the reaper -----------------------------------------------------------------------------


def test_default_lease_is_two_heartbeats(fleet: Fleet) -> None:
    fleet.set(heartbeat_seconds=1.5, handler="jobs:echo")
    fleet.push(seconds=0.3)
    fleet.check()
    fleet.until("start")
    [worker] = fleet.workers("active")
    assert worker.lease_seconds == 3.0
    assert WorkerRegistration(worker_id="w").lease_seconds == 10.0


def test_reaper_honours_its_threshold_and_reports(fleet: Fleet) -> None:
    enrol(fleet, "quiet")
    fleet.pool.push_many([fleet.job()] * 2, max_retries=2)
    fleet.pool.push(fleet.job(), max_retries=1)
    items = [fleet.pool.claim("quiet") for _ in range(3)]
    assert reaper.reap(fleet.store, threshold_seconds=600).workers == ()
    report = eventually(
        lambda: (r := reaper.reap(fleet.store, threshold_seconds=0.05)).workers and r
    )
    assert (report.workers, report.released, report.poisoned) == (("quiet",), 3, 1)
    assert [fleet.item(i.id).status for i in items] == ["pending", "pending", "poisoned"]
    assert fleet.store.workers.get("quiet").status == "lost"
    assert reaper.reap(fleet.store, threshold_seconds=0).workers == ()


# -- ephemeral workers ----------------------------------------------------------------------


def work_here(fleet: Fleet, worker_id: str, **changes: object) -> Any:
    settings = fleet.pool.state().settings.replace(**changes)
    return Worker(fleet.store, POOL, load(settings), settings=settings, worker_id=worker_id).run()


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_ephemeral_worker_claims_one_and_leaves(
    fleet: Fleet, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fleet.place)
    ids = [fleet.push(say=n) for n in range(2)]
    report = work_here(fleet, "w1", max_jobs=1, isolation=isolation)
    assert (report.jobs, report.failed, report.left) == (1, 0, "max_jobs")
    assert [fleet.item(i).status for i in ids] == ["done", "pending"]
    assert fleet.store.workers.get("w1").status == "terminated"


def test_ephemeral_worker_without_work_says_so(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fleet.place)
    report = work_here(fleet, "w1", max_jobs=1)
    assert (report.jobs, report.left) == (0, "no_work_available")
    assert fleet.store.workers.get("w1").status == "terminated"


def test_worker_of_a_failed_job_ends_well(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fleet.place)
    item = fleet.push()
    report = work_here(fleet, "w1", max_jobs=1, handler="jobs:fail")
    assert (report.jobs, report.failed) == (1, 1)
    assert (fleet.item(item).status, fleet.item(item).attempts) == ("pending", 1)
    assert fleet.store.workers.get("w1").status == "terminated"


def test_workers_of_the_queue_depth_policy_leave_when_there_is_nothing_to_do(fleet: Fleet) -> None:
    fleet.set(policy="queue-depth")
    fleet.push()
    fleet.check()
    fleet.until_done(1)
    fleet.until_gone()
    assert [worker.status for worker in fleet.workers()] == ["terminated"]
