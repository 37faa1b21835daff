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
from yards import POOL, Yard, eventually

from sprat.fleet import scaler


def test_jobs_are_done_exactly_once_and_no_container_stays(yard: Yard) -> None:
    yard.set(max_workers=4)
    ids = yard.pool.push_many([{"n": n} for n in range(200)])
    yard.until_done(200)
    assert {yard.pool.get(one).attempts for one in ids} == {1}
    assert set(yard.said().values()) == {1}
    assert len(yard.said()) == 400, "each began and ended"
    yard.until_empty()
    assert len(yard.workers()) >= 4
    assert {worker.status for worker in yard.workers()} == {"terminated"}


def test_a_fleet_grows_from_nothing_again(yard: Yard) -> None:
    for n in range(2):
        yard.push(n)
        yard.until_done(n + 1)
        yard.until_empty()
    assert len({worker.worker_id for worker in yard.workers()}) == 2


def test_nobody_is_interrupted_when_the_fleet_is_drained_under_load(yard: Yard) -> None:
    yard.set(max_workers=3)
    yard.pool.push_many([{"n": n, "seconds": 0.5} for n in range(60)])
    yard.check()
    eventually(lambda: yard.pool.counts().claimed == 3, what=yard.workers)
    running = [f"ended {item.data['n']}" for item in yard.pool.items(status="claimed")]
    scaler.scale(yard.store, POOL, 0)
    eventually(lambda: not yard.workers("active", "terminating"), what=yard.workers)
    eventually(lambda: all(one["State"] == "exited" for one in yard.containers()))
    assert not {worker.reason for worker in yard.workers()} & {"lost"}
    assert {worker.status for worker in yard.workers()} == {"terminated"}
    said = yard.said()
    began = sum(line.startswith("began") for line in said)
    ended = sum(line.startswith("ended") for line in said)
    assert all(said[line] == 1 for line in running), "what ran was finished"
    assert began == ended == yard.pool.counts().done
    assert yard.pool.counts().pending == 60 - ended > 0, "it was under load"
    yard.until_done(60)
    assert set(yard.said().values()) == {1}


def test_a_store_in_a_file_is_shared_by_a_volume(
    build: Callable[..., Yard], tmp_path: Path
) -> None:
    yard = build(url=f"sqlite:///{tmp_path}/fleet.db")
    yard.set(options={"volumes": [f"{tmp_path}:{tmp_path}", f"{yard.log}:/log"], "user": "0"})
    yard.push()
    yard.until_done(1)
    yard.until_empty()


# -- through a server ---------------------------------------------------------------------------


@pytest.fixture
def served(build: Callable[..., Yard], tmp_path: Path) -> Iterator[tuple[str, str]]:
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
    build: Callable[..., Yard], served: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, key = served
    monkeypatch.setenv("SPRAT_API_KEY", key)
    yard = build(url=url)
    yard.set(max_workers=3)
    yard.pool.push_many([{"n": n} for n in range(50)])
    yard.until_done(50)
    assert set(yard.said().values()) == {1}
    for one in yard.containers():
        about = yard.engine.inspect_container(one["Id"])
        assert key not in " ".join([about["Path"], *about["Args"]])
    yard.until_empty()
