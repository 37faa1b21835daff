"""The bells of those who wait on Redis: a ring is for one wait, and nobody stays on the list."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from patience import PATIENCE, eventually
from servers.redis import RedisServer

from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.redis.address import parse
from sprat.store.redis.client import RedisClient
from sprat.store.store import Store


@pytest.fixture
def server() -> Iterator[RedisServer]:
    server = RedisServer()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def store(server: RedisServer) -> Iterator[Store]:
    with open_store(server.url) as store:
        store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=1000.0))
        yield store


@pytest.fixture
def link(server: RedisServer) -> Iterator[RedisClient]:
    link = RedisClient(parse(server.url))
    yield link
    link.close()


def listed(link: RedisClient) -> int:
    return int(link.ask("ZCARD", f"{link.address.tag}:pool:papers:waiting"))


def test_nobody_stays_on_the_list(server: RedisServer, store: Store, link: RedisClient) -> None:
    pool = store.pool("papers")
    assert not pool.wait("w1", seconds=0.01)
    assert listed(link) == 0, "its time was up"
    woken: list[bool] = []
    waiter = threading.Thread(target=lambda: woken.append(pool.wait("w1", seconds=PATIENCE)))
    waiter.start()
    eventually(lambda: listed(link))
    with open_store(server.url) as other:
        other.pool("papers").push("work")
    waiter.join(PATIENCE)
    assert (woken, listed(link)) == ([True], 0)


def test_a_ring_for_an_earlier_wait_is_not_taken_for_work(store: Store, link: RedisClient) -> None:
    pool = store.pool("papers")
    assert not pool.wait("w1", seconds=0.01)
    (bell,) = link.ask("PUBSUB", "CHANNELS", f"{link.address.tag}:bell:*")
    assert link.ask("PUBLISH", bell, "1794804000000000") == 1
    assert not pool.wait("w1", seconds=0.01)
