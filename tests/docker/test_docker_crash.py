"""Containers that end before their time: the job runs again, and the reason is to be read."""

from __future__ import annotations

import pytest
from docker_fleet import DockerFleet, eventually
from servers import postgres

from sprat.launchers.docker import reconcile


def test_a_job_whose_container_is_killed_runs_again_and_is_charged(fleet: DockerFleet) -> None:
    item = fleet.push(7, until="go")
    fleet.check()
    fleet.until_said("began 7")
    fleet.engine.kill(fleet.container()["Id"])
    eventually(lambda: fleet.container()["State"] == "exited")
    fleet.check()
    [lost] = fleet.workers("lost")
    assert lost.reason.startswith("its container was ended by signal 9")
    assert "was ended by signal 9" in fleet.explained()
    (fleet.log / "go").touch()
    fleet.until_done(1)
    assert fleet.pool.get(item).attempts == 2
    assert fleet.said() == {"began 7": 2, "ended 7": 1}
    fleet.until_empty()


def test_a_container_that_somebody_removed_is_noticed(fleet: DockerFleet) -> None:
    fleet.set(heartbeat_seconds=600)
    item = fleet.push(7, until="go")
    fleet.check()
    fleet.until_said("began 7")
    fleet.engine.remove_container(fleet.container()["Id"], force=True)
    fleet.check()
    [lost] = fleet.workers("lost")
    assert lost.reason == "its container was removed"
    (fleet.log / "go").touch()
    fleet.until_done(1)
    assert fleet.pool.get(item).attempts == 2


def test_a_worker_that_takes_too_much_memory_is_told(fleet: DockerFleet) -> None:
    fleet.set(isolation="none", options={"memory": "64m"})
    item = fleet.pool.push({"n": 1, "megabytes": 500}, max_retries=1)
    fleet.check()
    eventually(lambda: fleet.check() and fleet.pool.get(item).status == "poisoned")
    [lost] = fleet.workers("lost")
    assert "killed for want of memory" in lost.reason


def test_a_worker_of_another_place_is_left_alone(fleet: DockerFleet) -> None:
    """It has no container here, and whatever it says of its place is not ours."""
    from sprat.core.model import WorkerRegistration

    for place in ({}, {"place": "sprat-papers-w2@elsewhere"}):
        name = f"w{len(place) + 1}"
        fleet.store.workers.register(
            WorkerRegistration(worker_id=name, pool_id=fleet.name, metadata=place)
        )
    fleet.check()
    assert {worker.status for worker in fleet.workers()} == {"active"}


# -- strays -------------------------------------------------------------------------------------


def test_a_stuck_container_is_stopped_when_its_worker_has_been_lost_for_long(
    fleet: DockerFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "STRAY_SECONDS", 2.0)
    fleet.set(max_workers=1, heartbeat_seconds=1.0, options={"stop_seconds": 1.0})
    fleet.push(7, until="go")
    fleet.check()
    fleet.until_said("began 7")
    stuck = fleet.container()["Id"]
    fleet.engine.pause(stuck)
    eventually(lambda: fleet.check() and fleet.workers("lost"))
    postgres.advance(fleet.url, 60.0)
    eventually(lambda: fleet.check() and stuck not in {one["Id"] for one in fleet.containers()})


def test_a_running_container_whose_worker_has_just_ended_is_left_alone(
    fleet: DockerFleet,
) -> None:
    fleet.push(7, until="go")
    fleet.check()
    fleet.until_said("began 7")
    [worker] = fleet.workers("active")
    fleet.store.workers.update_status(worker, "lost", reason="a test")
    fleet.set(max_workers=0)
    fleet.check()
    assert fleet.container()["State"] == "running"
