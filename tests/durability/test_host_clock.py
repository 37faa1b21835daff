"""The host's clock is set, or begins anew: time in the store does not go back, and nobody is
taken for dead, or kept alive, because of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sprat.core.model import Decision, WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.sqlite import clock, exchange_fast_path, schema
from sprat.store.store import Store

LEASE = 10.0
HOUR = 3600.0
DAY = 24 * HOUR


class Host:
    """Stands in for the runtime of a store, and for the kernel's name of this boot."""

    sleep = staticmethod(time.sleep)
    random_bytes = staticmethod(os.urandom)

    def __init__(self) -> None:
        self.wall = 1_700_000_000.0
        self.up = 50_000.0
        self.boot = "first"

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.up

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.up += seconds

    def reboot(self, *, wall_moved: float) -> None:
        self.boot += " and another"
        self.up = 3.0
        self.wall += wall_moved


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host()
    monkeypatch.setattr(clock, "runtime", host)
    monkeypatch.setattr(exchange_fast_path, "runtime", host)
    monkeypatch.setattr(schema, "runtime", host)
    monkeypatch.setattr(clock, "boot", lambda: host.boot)
    return host


@pytest.fixture
def opened(host: Host, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    stores: list[Store] = []

    def opened() -> Store:
        stores.append(open_store(f"sqlite:///{tmp_path}/fleet.db"))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    return opened()


@pytest.fixture
def pool(store: Store) -> WorkPool:
    return store.pool("papers")


def enrol(store: Store, worker_id: str = "w1", lease_seconds: float = LEASE) -> None:
    store.workers.register(WorkerRegistration(worker_id=worker_id, lease_seconds=lease_seconds))


def use(store: Store, host: Host, seconds: float) -> None:
    """Let time pass while the store is in use."""
    end = host.up + seconds
    while host.up < end:
        host.pass_by(min(1.0, end - host.up))
        store.backend.touch()


def now(store: Store) -> float:
    return store.pool("papers").observe().now


# -- set back -----------------------------------------------------------------------------------


def test_time_goes_on_when_the_clock_is_set_back(
    store: Store, host: Host, opened: Callable[[], Store]
) -> None:
    before = now(store)
    host.wall -= HOUR
    assert now(store) == before
    host.pass_by(5)
    assert now(store) == pytest.approx(before + 5)
    assert now(opened()) == pytest.approx(before + 5)


def test_leases_and_delays_run_out_when_the_clock_is_set_back(
    store: Store, pool: WorkPool, host: Host, opened: Callable[[], Store]
) -> None:
    enrol(store, "dead")
    enrol(store, "alive", lease_seconds=HOUR)
    pool.push("later", delay=60)
    host.wall -= HOUR
    again = opened()
    assert again.workers.reap().workers == ()
    use(again, host, LEASE + 1)
    assert again.workers.reap().workers == ("dead",)
    assert pool.claim("alive") is None
    host.pass_by(50)
    assert pool.claim("alive") is not None


# -- set forward --------------------------------------------------------------------------------


def test_store_follows_a_clock_that_is_set_forward_and_reaps_nobody(
    store: Store, host: Host, opened: Callable[[], Store]
) -> None:
    enrol(store)
    host.wall += HOUR
    assert now(opened()) == pytest.approx(host.wall)
    assert now(store) == pytest.approx(host.wall)
    assert store.workers.reap().workers == ()
    assert store.workers.reap(threshold_seconds=LEASE).workers == ()
    use(store, host, LEASE - 1)
    assert store.workers.reap().workers == ()
    use(store, host, 2)
    assert store.workers.reap().workers == ("w1",)


def test_reaper_that_was_open_all_the_time_reaps_nobody_either(store: Store, host: Host) -> None:
    enrol(store)
    host.wall += HOUR
    assert store.workers.reap().workers == ()
    assert now(store) == pytest.approx(host.wall)
    assert store.workers.heartbeat("w1").status == "active"


def test_delayed_items_are_ready_as_the_new_time_says(
    store: Store, pool: WorkPool, host: Host
) -> None:
    enrol(store, lease_seconds=HOUR)
    pool.push("tonight", delay=HOUR)
    host.wall += HOUR + 1
    store.workers.reap()
    assert pool.claim("w1") is not None


def test_clock_that_swings_does_not_pull_the_store_along_for_ever(store: Store, host: Host) -> None:
    enrol(store)
    for _ in range(5):
        host.wall += HOUR
        store.workers.reap()
        host.wall -= HOUR
        store.workers.reap()
    assert now(store) == pytest.approx(1_700_000_000.0 + HOUR)
    use(store, host, LEASE + 1)
    assert store.workers.reap().workers == ("w1",)


# -- a reboot -----------------------------------------------------------------------------------


def test_time_goes_on_with_the_wall_clock_after_a_reboot(
    store: Store, host: Host, opened: Callable[[], Store]
) -> None:
    enrol(store)
    store.close()
    host.reboot(wall_moved=300)
    again = opened()
    assert now(again) == pytest.approx(host.wall)
    host.pass_by(10)
    assert now(again) == pytest.approx(host.wall)


@pytest.mark.parametrize("wall_moved", [90.0, 10 * DAY, -10 * DAY])
@pytest.mark.parametrize("lease_seconds", [LEASE, DAY])
def test_worker_that_died_in_a_reboot_is_lost_at_once_and_uncharged(
    store: Store,
    pool: WorkPool,
    host: Host,
    opened: Callable[[], Store],
    wall_moved: float,
    lease_seconds: float,
) -> None:
    enrol(store, lease_seconds=lease_seconds)
    item_id = pool.push("work", max_retries=1)
    assert pool.claim("w1") is not None
    store.close()
    host.reboot(wall_moved=wall_moved)
    again = opened()
    assert again.workers.reap().workers == ("w1",)
    item = again.get(item_id)
    assert (item.status, item.attempts, item.given_back) == ("pending", 0, 1)


def test_launch_that_a_reboot_ended_is_given_up_at_once(
    store: Store, pool: WorkPool, host: Host, opened: Callable[[], Store]
) -> None:
    decision = Decision(
        pool="papers",
        policy="test",
        direction="up",
        current=0,
        desired=1,
        reason="a test",
        launch=1,
        max_workers=1,
    )
    recorded = pool.record(decision, version=0)
    assert recorded is not None
    store.close()
    host.reboot(wall_moved=5)
    assert opened().workers.reap().expired == recorded.launched


def test_worker_that_registers_after_a_reboot_has_an_ordinary_lease(
    store: Store, host: Host, opened: Callable[[], Store]
) -> None:
    enrol(store)
    store.close()
    host.reboot(wall_moved=90)
    again = opened()
    enrol(again)
    assert again.workers.reap().workers == ()
    worker = again.workers.get("w1")
    assert worker is not None
    assert (worker.renewals, worker.lease_until) == (0, pytest.approx(now(again) + LEASE))


@pytest.mark.parametrize("wall_moved", [-5.0, -HOUR, -10_000 * DAY])
def test_time_does_not_go_back_when_the_wall_clock_did_in_a_reboot(
    store: Store, pool: WorkPool, host: Host, opened: Callable[[], Store], wall_moved: float
) -> None:
    enrol(store, lease_seconds=DAY)
    pool.push("work")
    host.pass_by(1000)
    item = pool.claim("w1")
    assert item is not None
    host.pass_by(9.5)  # the last sign of life is the result itself
    assert pool.complete(item, "done")
    before = now(store)
    store.close()
    host.reboot(wall_moved=wall_moved)
    again = opened()
    assert before <= now(again) <= before + 60
    finished_at = again.get(item.id).finished_at
    assert finished_at is not None
    assert finished_at <= now(again)
