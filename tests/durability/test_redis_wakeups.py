"""Waiters on Redis: a wake-up is for one wait, and no waiter stays on the list."""

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
def client(server: RedisServer) -> Iterator[RedisClient]:
    client = RedisClient(parse(server.url))
    yield client
    client.close()


def listed(client: RedisClient) -> int:
    return int(client.ask("ZCARD", f"{client.address.tag}:pool:papers:waiting"))


def test_no_waiter_stays_on_the_list(
    server: RedisServer, store: Store, client: RedisClient
) -> None:
    pool = store.pool("papers")
    assert not pool.wait("w1", seconds=0.01)
    assert listed(client) == 0, "its time was up"
    woken: list[bool] = []
    waiter = threading.Thread(target=lambda: woken.append(pool.wait("w1", seconds=PATIENCE)))
    waiter.start()
    eventually(lambda: listed(client))
    with open_store(server.url) as other:
        other.pool("papers").push("work")
    waiter.join(PATIENCE)
    assert (woken, listed(client)) == ([True], 0)


def test_a_wakeup_for_an_earlier_wait_is_not_taken_for_work(
    store: Store, client: RedisClient
) -> None:
    pool = store.pool("papers")
    assert not pool.wait("w1", seconds=0.01)
    (channel,) = client.ask("PUBSUB", "CHANNELS", f"{client.address.tag}:bell:*")
    assert client.ask("PUBLISH", channel, "1794804000000000") == 1
    assert not pool.wait("w1", seconds=0.01)
