"""A store that cannot be reached for a while: jobs go on, and are settled when it is back.

The outage of one worker, as a cut network would make it, is a switch in front of its store. The
outage of all is a lock on the file.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from fleets import POOL, Fleet, eventually, is_alive, kill
from processes import beside, hear

from sprat.core.errors import StoreUnavailable
from sprat.fleet import reaper
from sprat.store.open_store import open_store
from sprat.store.store import Store
from sprat.worker.processor import load
from sprat.worker.worker import Worker

HEARTBEAT = 0.5
LEASE = 2 * HEARTBEAT


class Switched:
    """A backend that cannot be reached while a file is there; or only for the verb in it."""

    def __init__(self, backend: Any, switch: Path) -> None:
        self._backend = backend
        self._switch = switch

    def __getattr__(self, verb: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._switch.exists() and self._switch.read_text() in ("", verb):
                raise StoreUnavailable("switched off")
            return getattr(self._backend, verb)(*args, **kwargs)

        return call


def work(pipe: Any, url: str, switch: Path, directory: str) -> None:
    store = open_store(url)
    settings = store.pool(POOL).state().settings
    switched = Store(Switched(store.backend, switch), store.url)
    worker = Worker(switched, POOL, load(settings), settings=settings, worker_id="w1")
    pipe.send(worker.run())


class Outage:
    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.switch = fleet.place / "off"

    def work(self) -> Any:
        """Start the worker; the pipe on which it says how it ended."""
        args = (self.fleet.url, self.switch, str(self.fleet.place))
        self.process, pipe = beside(work, *args)
        return pipe

    def last(self, seconds: float) -> None:
        """Let the store be away for this long."""
        if not self.switch.exists():
            self.switch.touch()
        end = time.monotonic() + seconds
        eventually(lambda: time.monotonic() > end)


@pytest.fixture
def outage(fleet: Fleet) -> Iterator[Outage]:
    fleet.set(heartbeat_seconds=HEARTBEAT, idle_seconds=0.2)
    outage = Outage(fleet)
    yield outage
    outage.process.kill()
    outage.process.join()


each_isolation = pytest.mark.parametrize("isolation", ["process", "none"])


@each_isolation
def test_a_short_outage_is_ridden_out(outage: Outage, isolation: str) -> None:
    fleet = outage.fleet
    fleet.set(handler="jobs:wait_for_file", isolation=isolation, heartbeat_seconds=2.0)
    item = fleet.push(file=str(fleet.place / "go"))
    pipe = outage.work()
    fleet.until("start")
    outage.switch.touch()
    (fleet.place / "go").touch()
    fleet.until("end")
    began = time.monotonic()
    eventually(lambda: time.monotonic() - began > 1.0)  # of a lease of 4
    assert fleet.item(item).status == "claimed"
    outage.switch.unlink()
    done = fleet.until_status(item, "done")
    assert (done.attempts, done.result) == (1, "seen")
    assert hear(pipe).left == "idle"
    assert fleet.store.workers.get("w1").status == "terminated"


@each_isolation
def test_a_missed_heartbeat_is_made_up_for_before_the_lease_ends(
    outage: Outage, isolation: str
) -> None:
    """The lease is half spent when the job begins: its first heartbeat cannot wait for long."""
    fleet = outage.fleet
    fleet.set(isolation=isolation, heartbeat_seconds=1.0, idle_seconds=5.0)
    outage.work()
    worker = eventually(lambda: fleet.store.workers.get("w1"))
    eventually(lambda: fleet.pool.observe().now - worker.last_heartbeat > 0.9)
    item = fleet.push(seconds=2.5)
    fleet.until("start")
    began = time.monotonic()
    reaped: list[str] = []
    while not fleet.happened("end"):
        if 0.9 < time.monotonic() - began < 1.2:  # a heartbeat after the start
            outage.switch.touch()
        else:
            outage.switch.unlink(missing_ok=True)
        reaped += reaper.reap(fleet.store).workers
        time.sleep(0.01)
    assert reaped == []
    assert fleet.until_status(item, "done").attempts == 1


@each_isolation
def test_a_worker_that_was_busy_for_long_outlasts_one_too(outage: Outage, isolation: str) -> None:
    """Short jobs need no heartbeat: the claims have renewed the lease."""
    fleet = outage.fleet
    fleet.set(isolation=isolation)
    for _ in range(30):
        fleet.push(seconds=0.05)
    pipe = outage.work()
    fleet.until("end", 25)  # more than one lease
    outage.switch.touch()
    began = time.monotonic()
    eventually(lambda: time.monotonic() - began > 0.25)
    outage.switch.unlink()
    fleet.until_done(30)
    assert hear(pipe).jobs == 30
    assert set(fleet.starts().values()) == {1}


@each_isolation
def test_a_job_goes_on_past_its_lease_and_is_settled_when_the_store_is_back(
    outage: Outage, isolation: str
) -> None:
    fleet = outage.fleet
    fleet.set(handler="jobs:wait_for_file", isolation=isolation)
    item = fleet.push(file=str(fleet.place / "go"))
    pipe = outage.work()
    fleet.until("start")
    outage.last(2 * LEASE)
    assert outage.process.is_alive()
    (fleet.place / "go").touch()
    fleet.until("end")
    outage.switch.unlink()
    done = fleet.until_status(item, "done")
    assert (done.attempts, done.result, fleet.starts()[item]) == (1, "seen", 1)
    assert hear(pipe).left == "idle"


@each_isolation
def test_with_on_lost_contact_stop_a_job_ends_with_its_lease_and_is_handed_back(
    outage: Outage, isolation: str
) -> None:
    fleet = outage.fleet
    settings = {"isolation": isolation, "on_lost_contact": "stop"}
    fleet.set(handler="jobs:start_others_at_first", **settings)
    item = fleet.push()
    outage.work()
    [[_, _, job, _]] = fleet.until("start")
    [[_, *others]] = fleet.happened("others")
    outage.switch.touch()
    cut_at = time.monotonic()
    ended = others if isolation == "none" else [job, *others]
    eventually(lambda: not any(is_alive(int(pid)) for pid in ended))
    assert time.monotonic() - cut_at < LEASE + 2.0
    assert fleet.item(item).status == "claimed"  # as far as the store knows
    outage.switch.unlink()
    done = fleet.until_status(item, "done")
    assert (done.attempts, done.result) == (1, 2), "the first of two claims is not charged"


def test_an_idle_worker_waits_until_the_store_is_back(outage: Outage) -> None:
    fleet = outage.fleet
    fleet.set(idle_seconds=600)
    outage.work()
    eventually(lambda: fleet.store.workers.get("w1"))
    outage.last(2 * LEASE)
    item = fleet.push()
    outage.switch.unlink()
    assert fleet.until_status(item, "done").claimed_by == "w1"


def test_an_ephemeral_worker_does_not_take_an_outage_for_no_work(outage: Outage) -> None:
    outage.fleet.set(max_jobs=1)
    item = outage.fleet.push()
    outage.switch.write_text("exchange")  # it can register, and no more
    pipe = outage.work()
    eventually(lambda: outage.fleet.store.workers.get("w1"))
    outage.last(2 * LEASE)
    assert outage.fleet.item(item).status == "pending"
    outage.switch.unlink()
    report = hear(pipe)
    assert (report.jobs, report.left) == (1, "max_jobs")
    assert outage.fleet.item(item).status == "done"


def test_a_worker_without_work_leaves_when_told_although_the_store_is_away(
    outage: Outage,
) -> None:
    """There is nothing to store: its lease ends by itself."""
    outage.fleet.set(idle_seconds=600)
    pipe = outage.work()
    eventually(lambda: outage.fleet.store.workers.get("w1"))
    outage.switch.touch()
    os.kill(outage.process.pid, signal.SIGTERM)
    told_at = time.monotonic()
    assert hear(pipe).left == "told to leave"
    assert time.monotonic() - told_at < LEASE + 2.0


def test_a_worker_with_a_result_leaves_when_the_store_has_it(outage: Outage) -> None:
    fleet = outage.fleet
    fleet.set(handler="jobs:wait_for_file")
    item = fleet.push(file=str(fleet.place / "go"))
    pipe = outage.work()
    fleet.until("start")
    outage.switch.touch()
    os.kill(outage.process.pid, signal.SIGTERM)
    (fleet.place / "go").touch()
    outage.last(2 * LEASE)
    assert outage.process.is_alive()
    outage.switch.unlink()
    assert hear(pipe).left == "told to leave"
    assert fleet.item(item).status == "done"


class Lock:
    """Nobody else can write while it is held."""

    def __init__(self, fleet: Fleet) -> None:
        self._db = apsw.Connection(str(fleet.place / "fleet.db"))
        self._db.set_busy_timeout(10_000)
        self._db.execute("BEGIN IMMEDIATE")

    def free(self) -> None:
        self._db.execute("ROLLBACK")
        self._db.close()


def test_a_fleet_rides_out_a_locked_file(fleet: Fleet, tmp_path: Path) -> None:
    """Longer than a lease, and one worker dies meanwhile: the other one keeps its job, and the
    job of the dead one runs again uncharged."""
    fleet.set(handler="jobs:wait_for_file", heartbeat_seconds=HEARTBEAT, max_workers=2, max_jobs=1)
    ids = [fleet.push(file=str(tmp_path / "go")) for _ in range(4)]
    fleet.check()
    fleet.until("start", 2)
    victim, survivor = fleet.workers("active")
    lock = Lock(fleet)
    held_at = time.monotonic()
    os.kill(victim.pid, 9)
    (tmp_path / "go").touch()
    eventually(lambda: time.monotonic() - held_at > 2 * LEASE)
    assert is_alive(survivor.pid)
    lock.free()
    fleet.until_done(4)
    items = [fleet.item(i) for i in ids]
    assert [item.attempts for item in items] == [1, 1, 1, 1]  # the outage may have killed it
    assert sorted(item.given_back for item in items) == [0, 0, 0, 1]
    assert [fleet.starts()[item.id] for item in items] == [1 + item.given_back for item in items]
    kill(victim.pid)
