"""The store's clock: whatever the host's clock does, time in the store does not go back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprat.core.model import WorkerRecord, WorkerRegistration
from sprat.store.memory.backend import MemoryBackend
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Advance = Callable[[float], None]


class HostClock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def host() -> HostClock:
    return HostClock()


@pytest.fixture
def shaky(host: HostClock) -> Store:
    """A memory store on a host whose clock is set by hand."""
    return Store(MemoryBackend(clock=host))


def test_time_goes_forward_with_the_clock(pool: WorkPool, advance: Advance) -> None:
    before = pool.observe().now
    advance(100)
    assert pool.observe().now == pytest.approx(before + 100, abs=2)


def test_two_stores_on_the_same_data_have_one_clock(
    pool: WorkPool, advance: Advance, open_again: Callable[[], Store]
) -> None:
    advance(10_000)
    other = open_again().pool("papers")
    assert other.observe().now == pytest.approx(pool.observe().now, abs=2)


def test_time_does_not_go_back_with_the_clock(shaky: Store, host: HostClock) -> None:
    pool = shaky.pool("papers")
    before = pool.observe().now
    for step in (-1.0, -3600.0, -1e9):
        host.now += step
        assert pool.observe().now == before


def test_time_goes_on_from_the_highest_value_seen(shaky: Store, host: HostClock) -> None:
    pool = shaky.pool("papers")
    host.now += 50
    before = pool.observe().now
    host.now -= 3600
    assert pool.observe().now == before
    host.now += 10
    assert pool.observe().now == before + 10


def test_clock_set_back_neither_ends_nor_freezes_a_lease(shaky: Store, host: HostClock) -> None:
    shaky.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=10.0))
    host.now -= 3600
    assert shaky.workers.reap().workers == ()
    for _ in range(9):  # the store is in use meanwhile: a gap would be an outage
        host.now += 1
        assert shaky.workers.reap().workers == ()
    host.now += 2
    assert shaky.workers.reap().workers == ("w1",)


def test_clock_set_back_does_not_hold_up_delayed_items(shaky: Store, host: HostClock) -> None:
    pool = shaky.pool("papers")
    shaky.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=1000.0))
    pool.push("later", delay=60)
    host.now -= 3600
    assert pool.claim("w1") is None
    host.now += 61
    assert pool.claim("w1") is not None


def test_moments_are_those_of_the_store(
    store: Store, pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.push("work")
    advance(50)
    item = pool.claim("w1")
    assert item is not None
    advance(50)
    pool.complete(item)
    found = pool.get(item)
    assert found.claimed_at is not None
    assert found.finished_at is not None
    assert found.claimed_at - found.created_at == pytest.approx(50, abs=2)
    assert found.finished_at - found.claimed_at == pytest.approx(50, abs=2)
