"""The scaler: the fleet is set to a number by hand, once."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import apsw
import pytest
from fleets import POOL, Fleet, eventually

from sprat.core.model import WorkerRegistration
from sprat.fleet import scaler
from sprat.store.open_store import open_store

LIVE = ("starting", "active")


@pytest.fixture
def resident(fleet: Fleet) -> Fleet:
    """Workers that stay when there is nothing to do."""
    fleet.set(idle_seconds=600, max_workers=10)
    return fleet


def scale(fleet: Fleet, target: int, **options: bool) -> scaler.Scaled:
    return scaler.scale(fleet.store, POOL, target, **options)


def drain(fleet: Fleet) -> None:
    scale(fleet, 0)
    fleet.until_gone()


def until_active(fleet: Fleet, n: int) -> None:
    eventually(lambda: len(fleet.workers("active")) == n, what=fleet.workers)


def test_exactly_the_deficit_is_launched(resident: Fleet) -> None:
    first = scale(resident, 2)
    assert (first.current, first.launched, first.terminating) == (0, 2, 0)
    until_active(resident, 2)
    second = scale(resident, 3)
    assert (second.current, second.launched, second.terminating) == (2, 1, 0)
    until_active(resident, 3)
    assert len(resident.workers()) == 3
    drain(resident)


def test_starting_workers_count_as_current(resident: Fleet) -> None:
    scale(resident, 2)
    again = scale(resident, 2)
    assert (again.current, again.launched) == (2, 0)
    until_active(resident, 2)
    drain(resident)


def _scale_from_a_barrier(url: str, barrier: object, answers: object) -> None:
    store = open_store(url)
    barrier.wait()
    answers.put(scaler.scale(store, POOL, 3).launched)


def test_two_scalers_at_once_reach_the_target_once(resident: Fleet) -> None:
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(2), context.Queue()
    both = [
        context.Process(target=_scale_from_a_barrier, args=(resident.url, barrier, answers))
        for _ in range(2)
    ]
    for one in both:
        one.start()
    assert sorted(answers.get(timeout=30) for _ in both) == [0, 3]
    for one in both:
        one.join()
    until_active(resident, 3)
    assert len(resident.workers()) == 3
    drain(resident)


def test_surplus_leaves_idle_first_and_nobody_is_killed(resident: Fleet, tmp_path: Path) -> None:
    resident.set(handler="jobs:wait_for_file")
    scale(resident, 3)
    until_active(resident, 3)
    busy = [resident.push(file=str(tmp_path / "go")) for _ in range(2)]
    resident.until("start", 2)
    [idle] = [w for w in resident.workers("active") if not w.claims]

    one_less = scale(resident, 2)
    assert (one_less.current, one_less.terminating) == (3, 1)
    assert one_less.terminating_ids == (idle.worker_id,)
    eventually(lambda: resident.store.workers.get(idle.worker_id).status == "terminated")

    assert scale(resident, 0).terminating == 2
    waiting = resident.push(file=str(tmp_path / "go"))
    assert [resident.item(i).status for i in busy] == ["claimed", "claimed"]
    assert len(resident.workers("terminating")) == 2
    (tmp_path / "go").touch()
    resident.until_gone()
    assert [resident.item(i).status for i in busy] == ["done", "done"]
    assert [resident.item(i).attempts for i in busy] == [1, 1]
    assert {w.status for w in resident.workers()} == {"terminated"}
    assert resident.item(waiting).status == "pending", "who is told to leave claims no more"


def test_idle_worker_notices_that_it_has_to_leave(resident: Fleet) -> None:
    resident.set(heartbeat_seconds=60)  # it does not need a heartbeat to notice
    scale(resident, 1)
    until_active(resident, 1)
    scale(resident, 0)
    resident.until_gone(within=5)
    assert resident.workers()[0].status == "terminated"


def test_target_zero_drains_although_work_waits(resident: Fleet, tmp_path: Path) -> None:
    """Otherwise the pass of the last one who leaves would bring them all back."""
    resident.set(handler="jobs:wait_for_file", max_workers=2)
    ids = [resident.push(file=str(tmp_path / "go")) for _ in range(6)]
    resident.check()
    resident.until("start", 2)
    scale(resident, 0)
    (tmp_path / "go").touch()
    resident.until_gone()
    assert sorted(resident.item(i).status for i in ids) == ["done"] * 2 + ["pending"] * 4
    resident.set(idle_seconds=0.3)
    resident.check()
    resident.until_done(6)


def test_workers_with_an_ended_lease_are_not_counted(resident: Fleet) -> None:
    resident.store.workers.register(
        WorkerRegistration(worker_id="stale", pool_id=POOL, lease_seconds=0.01)
    )
    eventually(lambda: not resident.pool.observe().workers)
    scaled = scale(resident, 1)
    assert (scaled.current, scaled.launched) == (0, 1)
    until_active(resident, 1)
    drain(resident)


def writes(fleet: Fleet) -> tuple[int, object, object]:
    """What moves with every write, and with every decision."""
    db = apsw.Connection(str(fleet.place / "fleet.db"))
    try:
        moments = db.execute("SELECT version, last_up_at, last_down_at FROM scale_set").fetchall()
        return (len(fleet.pool.decisions()), moments, fleet.workers())
    finally:
        db.close()


def test_at_the_target_nothing_is_written(resident: Fleet) -> None:
    for n in range(2):
        resident.store.workers.register(
            WorkerRegistration(worker_id=f"w{n}", pool_id=POOL, lease_seconds=600)
        )
    watcher = apsw.Connection(str(resident.place / "fleet.db"))
    before = watcher.execute("PRAGMA data_version").get
    scaled = scale(resident, 2)
    assert (scaled.current, scaled.launched, scaled.terminating) == (2, 0, 0)
    assert watcher.execute("PRAGMA data_version").get == before
    watcher.close()
    assert resident.pool.observe().version == 0
    assert resident.pool.decisions() == []


@pytest.mark.parametrize("target", [0, 1, 5])
def test_dry_run_says_what_it_would_do_and_does_nothing(resident: Fleet, target: int) -> None:
    for n in range(2):
        resident.store.workers.register(
            WorkerRegistration(worker_id=f"w{n}", pool_id=POOL, lease_seconds=600)
        )
    before = writes(resident)
    scaled = scale(resident, target, dry_run=True)
    assert (scaled.current, scaled.launched, scaled.terminating) == (
        2,
        max(0, target - 2),
        max(0, 2 - target),
    )
    assert scaled.launched_ids == ()
    assert writes(resident) == before
    assert not resident.processes()
