"""The whole way: pushed, launched as containers, done exactly once, cleared away."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from docker_fleet import POOL, DockerFleet, eventually

from sprat.fleet import scaler


def test_jobs_are_done_exactly_once_and_no_container_stays(fleet: DockerFleet) -> None:
    fleet.set(max_workers=4)
    ids = fleet.pool.push_many([{"n": n} for n in range(200)])
    fleet.until_done(200)
    assert {fleet.pool.get(one).attempts for one in ids} == {1}
    assert set(fleet.said().values()) == {1}
    assert len(fleet.said()) == 400, "each began and ended"
    fleet.until_empty()
    assert len(fleet.workers()) >= 4
    assert {worker.status for worker in fleet.workers()} == {"terminated"}


def test_a_fleet_grows_from_nothing_again(fleet: DockerFleet) -> None:
    for n in range(2):
        fleet.push(n)
        fleet.until_done(n + 1)
        fleet.until_empty()
    assert len({worker.worker_id for worker in fleet.workers()}) == 2


def test_nobody_is_interrupted_when_the_fleet_is_drained_under_load(fleet: DockerFleet) -> None:
    fleet.set(max_workers=3)
    fleet.pool.push_many([{"n": n, "seconds": 0.5} for n in range(60)])
    fleet.check()
    eventually(lambda: fleet.pool.counts().claimed == 3, what=fleet.workers)
    running = [f"ended {item.data['n']}" for item in fleet.pool.items(status="claimed")]
    scaler.scale(fleet.store, POOL, 0)
    eventually(lambda: not fleet.workers("active", "terminating"), what=fleet.workers)
    eventually(lambda: all(one["State"] == "exited" for one in fleet.containers()))
    assert not {worker.reason for worker in fleet.workers()} & {"lost"}
    assert {worker.status for worker in fleet.workers()} == {"terminated"}
    said = fleet.said()
    began = sum(line.startswith("began") for line in said)
    ended = sum(line.startswith("ended") for line in said)
    assert all(said[line] == 1 for line in running), "what ran was finished"
    assert began == ended == fleet.pool.counts().done
    assert fleet.pool.counts().pending == 60 - ended > 0, "it was under load"
    fleet.until_done(60)
    assert set(fleet.said().values()) == {1}


def test_a_store_in_a_file_is_shared_by_a_volume(
    build: Callable[..., DockerFleet], tmp_path: Path
) -> None:
    fleet = build(url=f"sqlite:///{tmp_path}/fleet.db")
    fleet.set(options={"volumes": [f"{tmp_path}:{tmp_path}", f"{fleet.log}:/log"], "user": "0"})
    fleet.push()
    fleet.until_done(1)
    fleet.until_empty()


# -- through a server ---------------------------------------------------------------------------


@pytest.fixture
def served(build: Callable[..., DockerFleet], tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address of `sprat serve` over a file, and a key for it."""
    url = f"sqlite:///{tmp_path}/served.db"
    environment = {**os.environ, "SPRAT_URL": url}
    sprat = [sys.executable, "-m", "sprat"]
    roles = ("admin", "controller", "pusher", "worker")
    create = [*sprat, "keys", "create", *(f"--role={role}" for role in roles)]
    made = subprocess.run(create, env=environment, capture_output=True, text=True, check=True)
    [key] = [word for word in made.stdout.split() if word.startswith("sprat_")]
    log = tmp_path / "server.log"
    serve = [*sprat, "serve", "--port", "0", "--linger", "0"]
    with log.open("w") as said:
        server = subprocess.Popen(serve, env=environment, stderr=said)
    found = eventually(lambda: re.search(r"http://127.0.0.1:\d+", log.read_text()), what=log)
    yield found[0], key
    server.send_signal(signal.SIGTERM)
    server.wait(60)


def test_workers_reach_a_server_with_a_key(
    build: Callable[..., DockerFleet], served: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, key = served
    monkeypatch.setenv("SPRAT_API_KEY", key)
    fleet = build(url=url)
    fleet.set(max_workers=3)
    fleet.pool.push_many([{"n": n} for n in range(50)])
    fleet.until_done(50)
    assert set(fleet.said().values()) == {1}
    for one in fleet.containers():
        about = fleet.engine.inspect_container(one["Id"])
        assert key not in " ".join([about["Path"], *about["Args"]])
    fleet.until_empty()
