"""`sprat work --serve`: a worker that can be asked, registers, and registers again."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE, eventually
from servers.orchestrator import OPEN, Served

from sprat.config.probe_settings import Lifecycle
from sprat.core.errors import InvalidInput, StoreUnavailable
from sprat.server import endpoint_workers
from sprat.store.open_store import open_store
from sprat.store.store import Store
from sprat.worker import client, health

HEARTBEAT_SECONDS = 1.0
JOB = """
import os, time

def wait(data):
    while not os.path.exists(data):
        time.sleep(0.01)
    return "waited"
"""


def ask(url: str, path: str = "/health", method: str = "GET") -> tuple[int, Any]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
    connection.request(method, path)
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, json.loads(content) if content else None


class Working:
    """`sprat work waiting --serve`, as a process."""

    def __init__(self, place: Path, url: str, *words: str) -> None:
        given = {**os.environ, "SPRAT_URL": url, "PYTHONPATH": str(place)}
        line = [sys.executable, "-m", "sprat", "work", "waiting", "--idle", "10m"]
        line += ["--worker-id", "w1", "--serve", "127.0.0.1:0", *words]
        self.process = subprocess.Popen(line, cwd=place, env=given, stderr=subprocess.PIPE)
        self.said = ""
        self.url = self.until(r"health at (\S+)/health")[1]

    def until(self, pattern: str) -> re.Match[str]:
        assert self.process.stderr is not None
        while not (found := re.search(pattern, self.said)):
            ready, _, _ = select.select([self.process.stderr], [], [], PATIENCE)
            part = os.read(self.process.stderr.fileno(), 65536).decode() if ready else ""
            assert part, f"no {pattern!r} in {self.said!r}"
            self.said += part
        return found

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextmanager
def working(place: Path, url: str, *words: str) -> Iterator[Working]:
    made = Working(place, url, *words)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    (tmp_path / "jobs.py").write_text(JOB)
    with open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        store.pool("waiting").configure(
            handler="jobs:wait", start_on_push=False, heartbeat_seconds=HEARTBEAT_SECONDS
        )
        yield store


@pytest.fixture
def served(store: Store) -> Iterator[Served]:
    served = Served(store)
    yield served
    served.stop()
    served.join()


def on_port(store: Store, port: int) -> Served:
    """Another server where one was."""
    return eventually(lambda: _try(store, port))  # type: ignore[no-any-return]


def _try(store: Store, port: int) -> Served | None:
    try:
        return Served(store, OPEN.replace(port=port))
    except (OSError, InvalidInput):
        return None


def known(store: Store) -> Any:
    """The worker, once it is at work: only then does it say which process it is."""
    found = store.workers.get("w1")
    is_there = found is not None and found.status == "active" and found.pid is not None
    return found if is_there else None


# -- the steps ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 30), (7, 30), (1_000_000, 30)],
)
def test_registering_again_waits_longer_each_time(failures: int, seconds: float) -> None:
    assert client.pause_after(failures) == seconds


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:5003", ("127.0.0.1", 5003)),
        ("5003", ("127.0.0.1", 5003)),
        ("workers.internal:0", ("workers.internal", 0)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert health.read_address(text) == address


@pytest.mark.parametrize("text", ["", "host", "host:", ":5003", "host:65536", "host:x", "h:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="write HOST:PORT"):
        health.read_address(text)


# -- the endpoint -------------------------------------------------------------------------------


@pytest.fixture
def endpoint() -> Iterator[health.HealthServer]:
    made = health.HealthServer("127.0.0.1:0", lambda: "op-1").start()
    yield made
    made.close()


def test_health_is_answered_and_nothing_else(endpoint: health.HealthServer) -> None:
    busy = {"status": "healthy", "worker_status": "busy", "current_operation": "op-1"}
    assert ask(endpoint.url) == (200, busy)
    assert ask(endpoint.url, "/health?x=1")[0] == 200
    assert ask(endpoint.url, method="HEAD") == (200, None)
    assert ask(endpoint.url, "/")[0] == 404
    assert ask(endpoint.url, method="POST")[0] == 400


@pytest.mark.parametrize("sent", [b"", b"GET /hea", b"x" * 100_000, b"\0\r\n\r\n"])
def test_others_are_answered_after_a_client_that_is_no_good(
    endpoint: health.HealthServer, sent: bytes
) -> None:
    host, _, port = endpoint.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as silent:
        silent.sendall(sent)
        assert ask(endpoint.url)[0] == 200


def test_many_silent_clients_keep_no_other_waiting(
    endpoint: health.HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "ONE_REQUEST_SECONDS", 60.0)
    monkeypatch.setattr(health, "MAX_AT_ONCE", 5)
    host, _, port = endpoint.url.removeprefix("http://").partition(":")
    silent = [socket.create_connection((host, int(port)), 10) for _ in range(12)]
    assert ask(endpoint.url)[0] == 200
    assert [one.recv(1) for one in silent[:7]] == [b""] * 7, "the oldest are ended"
    silent[-1].sendall(b"GET /health HTTP/1.1\r\n")
    assert ask(endpoint.url)[0] == 200
    silent[-1].sendall(b"\r\n")
    assert silent[-1].recv(100).startswith(b"HTTP/1.1 200"), "the others are answered"
    for one in silent:
        one.close()


def test_a_silent_client_is_ended_in_time(
    endpoint: health.HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "ONE_REQUEST_SECONDS", 0.1)
    host, _, port = endpoint.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 10) as silent:
        assert silent.recv(1) == b""


def test_a_silent_client_is_ended_when_the_worker_leaves(
    endpoint: health.HealthServer,
) -> None:
    host, _, port = endpoint.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), PATIENCE) as silent:
        assert ask(endpoint.url)[0] == 200, "the silent one was accepted before this one"
        endpoint.close()
        assert silent.recv(1) == b""


# -- real processes -----------------------------------------------------------------------------


def test_a_worker_is_registered_with_its_endpoint_and_says_what_it_does(
    tmp_path: Path, store: Store, served: Served
) -> None:
    with working(tmp_path, served.url) as worker:
        eventually(lambda: known(store))
        idle = {"status": "healthy", "worker_status": "idle", "current_operation": None}
        assert ask(worker.url) == (200, idle)
        go = tmp_path / "go"
        item = store.pool("waiting").push(str(go))
        busy = {"status": "healthy", "worker_status": "busy", "current_operation": item}
        eventually(lambda: ask(worker.url) == (200, busy))
        (found,) = ask(served.url, "/api/v1/workers")[1]["workers"]
        assert found["endpoint_url"] == worker.url
        assert (found["status"], found["current_operation_id"]) == ("busy", item)
        go.touch()
        eventually(lambda: store.get(item).status == "done")
    assert worker.process.returncode == 0
    assert ask(served.url, "/api/v1/workers")[1]["workers"] == [], "it left"


def test_a_server_that_may_probe_sees_the_worker_as_healthy(tmp_path: Path, store: Store) -> None:
    rules = Lifecycle(probe_hosts=("127.0.0.0/8",), health_check_interval=0.2)
    served = Served(store, OPEN.replace(lifecycle=rules))
    with working(tmp_path, served.url):
        eventually(lambda: known(store))
        eventually(lambda: endpoint_workers.health(store.backend, "w1").worker_status == "idle")
        assert endpoint_workers.health(store.backend, "w1").failures == 0
    served.stop()
    served.join()


def test_a_worker_that_was_removed_registers_again(
    tmp_path: Path, store: Store, served: Served
) -> None:
    with working(tmp_path, served.url) as worker:
        first = eventually(lambda: known(store)).incarnation
        ask(served.url, "/api/v1/workers/deregister/w1", "DELETE")
        worker.until("registering again")
        eventually(lambda: known(store) and known(store).incarnation > first)
        item = store.pool("waiting").push(str(tmp_path))  # is there: nothing to wait for
        eventually(lambda: store.get(item).status == "done")


def test_a_removed_worker_stops_its_job(tmp_path: Path, store: Store, served: Served) -> None:
    with working(tmp_path, served.url) as worker:
        item = store.pool("waiting").push(str(tmp_path / "never"))
        eventually(lambda: ask(worker.url)[1]["current_operation"] == item)
        store.pool("waiting").pause()  # so that it is not given to it again
        ask(served.url, "/api/v1/workers/deregister/w1", "DELETE")
        eventually(lambda: ask(worker.url)[1]["worker_status"] == "idle")
        assert f"job {item} attempt 1/3 stopped" in worker.until("registering again").string


def test_what_was_finished_during_an_outage_is_settled_after_it(
    tmp_path: Path, store: Store
) -> None:
    served = Served(store)
    with working(tmp_path, served.url, "--isolation", "none") as worker:
        go = tmp_path / "go"
        item = store.pool("waiting").push(str(go))
        eventually(lambda: ask(worker.url)[1]["current_operation"] == item)
        served.stop()
        served.join()
        go.touch()
        end = time.monotonic() + 3 * HEARTBEAT_SECONDS  # longer than its lease
        eventually(lambda: time.monotonic() > end)
        again = on_port(store, served.port)
        try:
            done = eventually(lambda: store.get(item).status == "done" and store.get(item))
            assert done.result == "waited"
            assert done.attempts == 1, "it was not run twice"
            eventually(lambda: known(store))
        finally:
            again.stop()
            again.join()


def test_a_worker_that_cannot_reach_its_server_leaves_when_told(
    tmp_path: Path, store: Store
) -> None:
    served = Served(store)
    with working(tmp_path, served.url) as worker:
        eventually(lambda: known(store))
        served.stop()
        served.join()
    assert worker.process.returncode in (0, -signal.SIGTERM)


def test_a_worker_waits_for_a_server_that_is_not_there_yet(tmp_path: Path, store: Store) -> None:
    waits: list[float] = []
    served = Served(store)
    served.stop()
    served.join()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            later.append(on_port(store, served.port))

    later: list[Served] = []
    mine = client.Client(
        served.url, worker_id="w1", worker_type="waiting", endpoint_url="http://127.0.0.1:1"
    )
    with pytest.raises(StoreUnavailable, match="no answer from http://127"):
        mine.register()
    assert mine.register_in_time(sleep) == []
    assert waits == [1, 2, 4]
    assert mine.is_known()
    mine.deregister()
    assert not mine.is_known()
    later[0].stop()
    later[0].join()


def test_without_an_orchestrator_a_worker_serves_its_health_alone(
    tmp_path: Path, store: Store
) -> None:
    with working(tmp_path, store.url) as worker:
        assert ask(worker.url)[1]["worker_status"] == "idle"
        assert eventually(lambda: known(store)).metadata["endpoint_url"] == worker.url


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path, store: Store) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = [sys.executable, "-m", "sprat", "work", "waiting", "--serve", str(port)]
        given = {**os.environ, "SPRAT_URL": store.url, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            line, env=given, cwd=tmp_path, capture_output=True, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"cannot serve on {port} (Address already in use)" in done.stderr


# -- workers of your own ------------------------------------------------------------------------


def test_the_recipe_for_a_worker_of_your_own_works(
    tmp_path: Path, store: Store, served: Served
) -> None:
    page = Path(__file__).parents[2] / "docs" / "recipes" / "own-worker.md"
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    item = store.pool("backtesting").push({"n": 20})
    given = {**os.environ, "SPRAT_URL": served.url}
    done = subprocess.run(
        [sys.executable, "-c", code], env=given, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("stop: []\n", "")
    assert (store.get(item).status, store.get(item).result) == ("done", 21)
    assert ask(served.url, "/api/v1/workers")[1]["workers"] == []


def test_an_operation_that_another_holds_comes_back_as_one_to_stop(
    store: Store, served: Served
) -> None:
    item = store.pool("backtesting").push(1)
    mine, other = (
        client.Client(
            served.url,
            worker_id=name,
            worker_type="backtesting",
            endpoint_url=f"http://127.0.0.1:{port}",
        )
        for name, port in (("mine", 1), ("other", 2))
    )
    other.register()
    other.call("POST", "/api/v1/pools/backtesting/claim", {"worker_id": "other"})
    mine.operation = item
    assert mine.health()["worker_status"] == "busy"
    assert mine.register() == [item]
    mine.finish(item, result="late")
    assert mine.health()["worker_status"] == "idle"
    assert mine.register() == []
    assert store.get(item).status != "done", "the late result is not taken"
