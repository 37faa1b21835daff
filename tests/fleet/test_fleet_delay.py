"""Work that is not due yet: one fork server waits for it, and nothing else runs meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

from fleets import Fleet, eventually
from worlds import SqliteWorld


def test_a_nest_waits_for_each_retry_when_no_worker_is_left(fleet: Fleet) -> None:
    """Twice: the second wait is as good as the first."""
    fleet.set(handler="jobs:fail_until", idle_seconds=0.05, retry_base_seconds=1.0, max_workers=1)
    item = fleet.push(attempt=3)
    fleet.check()
    fleet.until("start")
    eventually(lambda: len(fleet.processes()) == 1)
    assert not fleet.workers("starting", "active")
    assert fleet.until_status(item, "done").result == 3
    assert len({w.worker_id for w in fleet.workers()}) == 3


def test_only_one_nest_stays_and_it_knows_what_is_due_first(fleet: Fleet, tmp_path: Path) -> None:
    fleet.set(handler="jobs:wait_for_file", idle_seconds=0.05, max_workers=1)
    late = fleet.pool.push(fleet.job(file=str(tmp_path)), delay=600)
    fleet.push(file=str(tmp_path))
    fleet.check()
    fleet.until_done(1)
    eventually(lambda: len(fleet.processes()) == 1)
    [sleeper] = fleet.fork_servers()

    due = fleet.pool.push(fleet.job(file=str(tmp_path)), delay=1.5)
    fleet.push(file=str(tmp_path))
    fleet.check()  # another fork server, which leaves when it finds the first one waiting
    fleet.until_done(2)
    eventually(lambda: len(fleet.processes()) == 1)
    assert fleet.fork_servers() == [sleeper]
    fleet.until_status(due, "done", within=10)

    fleet.pool.cancel(late)
    fleet.may_stay = True  # it looks when the cancelled item would have been due


def test_due_work_does_not_wait_for_a_long_job(fleet: Fleet, tmp_path: Path) -> None:
    fleet.set(handler="jobs:wait_for_file", idle_seconds=0.05, max_workers=2)
    long = fleet.push(file=str(tmp_path / "go"))
    due = fleet.pool.push(fleet.job(file=str(tmp_path)), delay=1.0)
    fleet.check()
    fleet.until("start")
    fleet.until_status(due, "done", within=15)
    assert fleet.item(long).status == "claimed"
    (tmp_path / "go").touch()
    fleet.until_done(2)


def test_work_that_comes_while_the_last_worker_leaves_is_not_forgotten(fleet: Fleet) -> None:
    """A push sees an idle worker, and the worker goes: the fork server looks once more."""
    fleet.set(idle_seconds=0.01, start_on_push=True, isolation="none", max_workers=2)
    for n in range(30):
        item = fleet.push(say=n)
        fleet.until_status(item, "done", within=15)
        time.sleep(0.01 * (n % 3))


def test_a_pool_that_was_paused_for_a_while_goes_on_by_itself(fleet: Fleet) -> None:
    fleet.set(start_on_push=True)
    fleet.pool.pause(1.0)
    item = fleet.push()
    fleet.until_status(item, "done", within=15)


def test_a_delayed_push_is_waited_for_by_one_fork_server(fleet: Fleet, tmp_path: Path) -> None:
    """However long the pushes take: nothing is due before the store's clock is moved."""
    fleet.set(start_on_push=True)
    fork_servers: set[int] = set()
    for n in range(100):
        fleet.pool.push(fleet.job(say=n), delay=600)
        fork_servers.update(fleet.fork_servers())
    eventually(lambda: len(fleet.processes()) == 1, what=fleet.processes)
    assert fleet.fork_servers()[0] in fork_servers
    assert len(fork_servers) <= 3
    SqliteWorld(tmp_path).advance(600)
    fleet.push(say=100)  # wakes the one that sleeps
    fleet.until_done(101)
    fleet.may_stay = True  # it looks once more when its nap is over
    assert set(fleet.starts().values()) == {1}
