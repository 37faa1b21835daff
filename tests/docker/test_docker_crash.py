"""Containers that end before their time: the job runs again, and the reason is to be read."""

from __future__ import annotations

import pytest
from servers import postgres
from yards import Yard, eventually

from sprat.launchers.docker import reconcile


def test_a_job_whose_container_is_killed_runs_again_and_is_charged(yard: Yard) -> None:
    item = yard.push(7, until="go")
    yard.check()
    yard.until_said("began 7")
    yard.engine.kill(yard.container()["Id"])
    eventually(lambda: yard.container()["State"] == "exited")
    yard.check()
    [lost] = yard.workers("lost")
    assert lost.reason.startswith("its container was ended by signal 9")
    assert "was ended by signal 9" in yard.explained()
    (yard.log / "go").touch()
    yard.until_done(1)
    assert yard.pool.get(item).attempts == 2
    assert yard.said() == {"began 7": 2, "ended 7": 1}
    yard.until_empty()


def test_a_container_that_somebody_removed_is_noticed(yard: Yard) -> None:
    yard.set(heartbeat_seconds=600)
    item = yard.push(7, until="go")
    yard.check()
    yard.until_said("began 7")
    yard.engine.remove_container(yard.container()["Id"], force=True)
    yard.check()
    [lost] = yard.workers("lost")
    assert lost.reason == "its container was removed"
    (yard.log / "go").touch()
    yard.until_done(1)
    assert yard.pool.get(item).attempts == 2


def test_a_worker_that_takes_too_much_memory_is_told(yard: Yard) -> None:
    yard.set(isolation="none", options={"memory": "64m"})
    item = yard.pool.push({"n": 1, "megabytes": 500}, max_retries=1)
    yard.check()
    eventually(lambda: yard.check() and yard.pool.get(item).status == "poisoned")
    [lost] = yard.workers("lost")
    assert "killed for want of memory" in lost.reason


def test_a_worker_of_another_place_is_left_alone(yard: Yard) -> None:
    """It has no container here, and whatever it says of its place is not ours."""
    from sprat.core.model import WorkerRegistration

    for place in ({}, {"place": "sprat-papers-w2@elsewhere"}):
        name = f"w{len(place) + 1}"
        yard.store.workers.register(
            WorkerRegistration(worker_id=name, pool_id=yard.name, metadata=place)
        )
    yard.check()
    assert {worker.status for worker in yard.workers()} == {"active"}


# -- strays -------------------------------------------------------------------------------------


def test_a_stuck_container_is_stopped_when_its_worker_has_been_lost_for_long(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "STRAY_SECONDS", 2.0)
    yard.set(max_workers=1, heartbeat_seconds=1.0, options={"stop_seconds": 1.0})
    yard.push(7, until="go")
    yard.check()
    yard.until_said("began 7")
    stuck = yard.container()["Id"]
    yard.engine.pause(stuck)
    eventually(lambda: yard.check() and yard.workers("lost"))
    postgres.advance(yard.url, 60.0)
    eventually(lambda: yard.check() and stuck not in {one["Id"] for one in yard.containers()})


def test_a_container_that_runs_is_left_alone_when_its_worker_has_just_ended(yard: Yard) -> None:
    yard.push(7, until="go")
    yard.check()
    yard.until_said("began 7")
    [worker] = yard.workers("active")
    yard.store.workers.update_status(worker, "lost", reason="a test")
    yard.set(max_workers=0)
    yard.check()
    assert yard.container()["State"] == "running"
