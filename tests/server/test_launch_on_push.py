"""With `--launch`, work that comes in over HTTP starts workers on the server's side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from servers.orchestrator import OPEN, serving

from sprat.store.open_store import open_store
from sprat.store.store import Store

SECONDS = 30.0  # on a busy machine
LAUNCH = OPEN.replace(launch=True)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        yield store


def configure(store: Store, name: str, directory: Path, **settings: object) -> None:
    store.pool(name).configure(command=["cat"], directory=str(directory), **settings)


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.05)


def test_a_push_over_http_is_worked_on(served: Store, tmp_path: Path) -> None:
    configure(served, "papers", tmp_path, start_on_push=True)
    with serving(served, LAUNCH) as server, open_store(server.url) as client:
        client.pool("papers").push_many([{"n": 1}, {"n": 2}])
        wait_until(lambda: served.pool("papers").counts().done == 2)


def test_requeued_and_resumed_work_over_http_is_worked_on(served: Store, tmp_path: Path) -> None:
    configure(served, "papers", tmp_path, start_on_push=True)
    with serving(served, LAUNCH) as server, open_store(server.url) as client:
        pool = client.pool("papers")
        pool.pause()
        job = pool.push({"n": 1})
        pool.cancel(job)
        assert pool.requeue(job) == 1
        pool.resume()
        wait_until(lambda: served.pool("papers").counts().done == 1)


def test_nobody_is_started_for_a_pool_that_may_be_a_tenants(served: Store, tmp_path: Path) -> None:
    configure(served, "acme.papers", tmp_path, start_on_push=True)
    configure(served, "papers", tmp_path, start_on_push=True)
    with serving(served, LAUNCH) as server, open_store(server.url) as client:
        client.pool("acme.papers").push({"n": 1})
        client.pool("papers").push({"n": 2})  # one thread starts fleets, in turn
        wait_until(lambda: served.pool("papers").counts().done == 1)
    assert served.pool("acme.papers").decisions() == []
    assert served.pool("acme.papers").counts().pending == 1
