"""Launches: one container a worker, those that fail, and those of others."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest
from docker_fleet import IMAGE, DockerFleet, eventually
from servers import postgres

from sprat.core.errors import InvalidInput, LaunchFailed, SpratError
from sprat.core.model import Decision
from sprat.fleet.launcher import open_launcher


def reserve(fleet: DockerFleet, n: int) -> tuple[str, ...]:
    """Places for workers, as a pass makes them; nobody is started yet."""
    seen = fleet.pool.observe()
    decision = Decision(
        pool=fleet.name,
        policy="fixed",
        direction="up",
        current=0,
        desired=n,
        reason="a test",
        launch=n,
        max_workers=10,
    )
    recorded = fleet.pool.record(decision, version=seen.version)
    assert recorded is not None
    return recorded.launched


def launch(fleet: DockerFleet, worker_ids: tuple[str, ...]) -> None:
    settings = fleet.pool.state().settings
    open_launcher("docker").launch(fleet.store.url, fleet.name, settings, worker_ids)


def test_a_launch_that_is_repeated_is_one_container(fleet: DockerFleet) -> None:
    fleet.push(1, until="go")
    worker_ids = reserve(fleet, 1)
    threads = [threading.Thread(target=launch, args=(fleet, worker_ids)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    launch(fleet, worker_ids)
    fleet.until_said("began 1")
    assert fleet.container()["Labels"]["sprat.worker"] == worker_ids[0]
    (fleet.log / "go").touch()
    fleet.until_done(1)


def test_a_container_that_was_made_but_not_started_is_started(
    fleet: DockerFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sprat.launchers.docker.engine import Engine

    class Killed(BaseException):
        pass

    def killed(self: Engine, name: str) -> None:
        raise Killed

    fleet.push(1)
    worker_ids = reserve(fleet, 1)
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "start", killed)
        with pytest.raises(Killed):
            launch(fleet, worker_ids)
    assert fleet.container()["State"] == "created"
    launch(fleet, worker_ids)
    fleet.until_done(1)
    assert [worker.worker_id for worker in fleet.workers()] == list(worker_ids)


def test_a_container_gets_little_and_may_do_little(
    fleet: DockerFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "t0ken")
    monkeypatch.setenv("OTHER", "not for them")
    fleet.set(
        environment=["TOKEN", "ABSENT"],
        options={
            "environment": {"MODE": "fast"},
            "labels": {"team": "reading"},
            "memory": "200m",
            "cpus": 0.5,
            "read_only": True,
        },
    )
    fleet.push(1, until="go")
    fleet.check()
    fleet.until_said("began 1")
    about = fleet.engine.inspect_container(fleet.container()["Id"])
    given = dict(line.split("=", 1) for line in about["Config"]["Env"])
    [worker] = fleet.workers("active")
    image = {"PATH", "PYTHONUNBUFFERED"}
    assert {name: value for name, value in given.items() if name not in image} == {
        "TOKEN": "t0ken",
        "MODE": "fast",
        "SPRAT_URL": fleet.store.url,
        "SPRAT_DIRECTORY": "/app",
        "SPRAT_PLACE": worker.metadata["place"],
    }
    assert (about["Path"], about["Args"]) == (
        "sprat",
        ["work", fleet.name, "--worker-id", worker.worker_id, "--launched"],
    )
    assert about["Config"]["Labels"]["team"] == "reading"
    limits = about["HostConfig"]
    assert limits["CapDrop"] == ["ALL"]
    assert limits["SecurityOpt"] == ["no-new-privileges"]
    assert (limits["Memory"], limits["NanoCpus"]) == (200 << 20, 500_000_000)
    assert limits["ReadonlyRootfs"]
    assert limits["Init"]
    (fleet.log / "go").touch()
    fleet.until_done(1)


# -- what fails ---------------------------------------------------------------------------------


def failed(fleet: DockerFleet) -> str:
    """The reason, after a pass whose launch fails as a whole."""
    fleet.push(1)
    fleet.push(2)
    with pytest.raises(LaunchFailed):
        fleet.check()
    assert not fleet.workers("starting"), "the slots are free"
    assert not fleet.containers()
    [lost] = fleet.workers("lost")
    assert lost.reason in fleet.explained()
    return str(lost.reason)


def test_an_image_that_is_not_there(fleet: DockerFleet) -> None:
    fleet.set(options={"image": "localhost/nothing:1"})
    assert failed(fleet) == (
        "not launched: the engine has no image localhost/nothing:1, and pull is never: "
        "load it there"
    )


def test_an_image_that_cannot_be_pulled(fleet: DockerFleet) -> None:
    fleet.set(options={"image": "127.0.0.1:9/nothing:1", "pull": "missing"})
    reason = failed(fleet)
    assert reason.startswith("not launched: the image 127.0.0.1:9/nothing:1 cannot be pulled: ")
    assert "connection refused" in reason


def test_an_image_that_is_there_is_not_pulled(fleet: DockerFleet) -> None:
    fleet.set(options={"pull": "missing"})
    fleet.push(1)
    fleet.until_done(1)


def test_what_the_engine_refuses_leaves_no_container_behind(fleet: DockerFleet) -> None:
    fleet.set(options={"network": "container:nonesuch"})
    assert failed(fleet) == "not launched: No such container: nonesuch"


def test_a_store_that_containers_cannot_reach(fleet: DockerFleet) -> None:
    fleet.set(options={"network": None})
    fleet.push(1)
    with pytest.raises(InvalidInput, match="inside a container is the container itself"):
        fleet.check()
    assert not fleet.workers("starting")


def test_some_that_cannot_be_started_do_not_stop_the_others(
    fleet: DockerFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sprat.launchers.docker.engine import Engine

    start = Engine.start

    def first_only(self: Engine, name: str) -> None:
        if [one for one in fleet.containers() if one["State"] == "running"]:
            raise SpratError("the Docker engine says: no space left on device")
        start(self, name)

    monkeypatch.setattr(Engine, "start", first_only)
    fleet.set(max_workers=3)
    for n in range(3):
        fleet.push(n, until="go")
    assert fleet.check().spawned == 3
    fleet.until_said("began 0")
    assert len(fleet.containers()) == 1
    [lost] = fleet.workers("lost")
    assert lost.reason == "not launched: the Docker engine says: no space left on device"
    assert len(fleet.workers("terminated")) == 1, "the other one was called off"


STARTS = {
    "no such program": ({"command": ["nonesuch"]}, {}, "exec nonesuch failed: No such file"),
    "no such handler": ({}, {"handler": "nowhere:run"}, "handler nowhere:run cannot be imported"),
    "no such directory": ({"directory": "/nowhere"}, {}, "the directory /nowhere"),
    "another user": ({"user": "1234567890123"}, {}, "uids and gids must be in range"),
}


@pytest.mark.parametrize(("options", "settings", "why"), STARTS.values(), ids=list(STARTS))
def test_why_a_start_failed_can_be_read(
    fleet: DockerFleet, options: dict[str, object], settings: dict[str, object], why: str
) -> None:
    fleet.set(options=options, **settings)
    fleet.push(1)
    try:
        fleet.check()
    except LaunchFailed:
        pass  # the engine itself knows better
    eventually(lambda: fleet.workers("lost") or (fleet.check() and False), what=fleet.workers)
    [lost, *_] = fleet.workers("lost")
    assert why in lost.reason
    assert why in fleet.explained()
    fleet.set(max_workers=0)
    fleet.until_empty()


def test_an_engine_that_is_not_there(fleet: DockerFleet) -> None:
    fleet.set(options={"host": "unix:///nowhere/docker.sock"})
    fleet.push(1)
    ran = fleet.sprat("check", fleet.name)
    assert ran.returncode in (1, 2)
    said = (
        "the Docker engine at unix:///nowhere/docker.sock cannot be asked: "
        "No such file or directory"
    )
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not fleet.workers("starting")
    assert said in fleet.explained()


# -- others -------------------------------------------------------------------------------------


def test_pools_and_stores_of_one_engine_leave_each_other_alone(
    build: Callable[..., DockerFleet],
) -> None:
    first = build()
    second = build("other")
    third = build(first.name, url=postgres.shared_url() + "?schema=another")
    fleets = (first, second, third)
    for fleet in fleets:
        fleet.push(1, until="go")
        fleet.check()
    for fleet in fleets:
        fleet.until_said("began 1")
    [theirs] = second.containers()
    assert len(first.containers()) == 2, "of two stores"
    before = {one["Id"] for one in first.containers()}
    second.engine.kill(theirs["Id"])
    for _ in range(2):
        first.check()
        third.check()
    assert {one["Id"] for one in first.containers()} == before
    assert second.container()["State"] == "exited", "only its own pool clears it away"
    for fleet in fleets:
        (fleet.log / "go").touch()
        fleet.until_done(1)
    eventually(lambda: [y.check() for y in fleets] and not any(y.containers() for y in fleets))


def test_doctor_asks_the_engine(fleet: DockerFleet) -> None:
    def said() -> str:
        ran = fleet.sprat("doctor", "--json")
        about = [one["detail"] for one in json.loads(ran.stdout)["checks"]]
        return next(line for line in about if "engine" in line or "launcher" in line)

    assert said() == "launcher docker is usable"
    fleet.set(options={"image": "localhost/nothing:1"})
    assert said() == "the engine has no image localhost/nothing:1, and pull is never"
    fleet.set(options={"image": IMAGE, "host": "tcp://127.0.0.1:9"})
    assert said().startswith("the Docker engine at tcp://127.0.0.1:9 cannot be asked: ")
