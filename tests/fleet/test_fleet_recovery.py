"""After kill -9 of every process one call of any kind is enough, and no second one is made."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from fleets import PATIENCE, POOL, Fleet

import sprat
from sprat.cli import main, watch
from sprat.core import model
from sprat.tasks import results

HEARTBEAT = 0.5
LEASE = 2 * HEARTBEAT
RESERVATION = model.SHORTEST_RESERVATION_SECONDS
START_SECONDS = 5.0  # of a worker from nothing, on a machine that does other things as well


def push(fleet: Fleet, _: str) -> None:
    fleet.push(quick=True)


def check(fleet: Fleet, _: str) -> None:
    assert main.main(["check", POOL, "--url", fleet.url]) == 0


def watch_pool(fleet: Fleet, _: str) -> None:
    assert main.main(["watch", POOL, "--url", fleet.url, "--timeout", str(PATIENCE)]) == 0


def result(fleet: Fleet, item: str) -> None:
    assert sprat.result(item, PATIENCE, store=fleet.store) == 2


@pytest.fixture
def mortal(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """A fleet in the middle of its jobs. What waits for them makes one call in all."""
    for module in (results, watch):
        monkeypatch.setattr(module, "CALL_SECONDS", 600.0)
    fleet.set(handler="jobs:slow_when_first_claimed", heartbeat_seconds=HEARTBEAT, max_workers=2)
    fleet.set(start_on_push=True)
    return fleet


@pytest.mark.parametrize("call", [push, check, watch_pool, result])
def test_one_call_recovers_from_the_death_of_every_process(
    mortal: Fleet, call: Callable[[Fleet, str], None]
) -> None:
    ids = [mortal.push() for _ in range(2)]
    mortal.until("start", 2)
    mortal.end()
    killed_at = time.time()
    call(mortal, ids[0])
    starts = mortal.until("start", 4)
    assert float(starts[3][3]) - killed_at < LEASE + 2.0 + START_SECONDS
    assert [mortal.until_status(i, "done").result for i in ids] == [2, 2]
    assert {mortal.item(i).attempts for i in ids} <= {1, 2}


def test_a_push_recovers_while_the_leases_of_the_dead_last_long(mortal: Fleet) -> None:
    """The store still counts on the dead workers. The job that waits does not."""
    mortal.set(heartbeat_seconds=3.0, max_workers=3)  # a lease is longer than START_SECONDS
    mortal.push()
    mortal.until("start")
    mortal.end()
    called_at = time.time()
    pushed = mortal.push(quick=True)
    done = mortal.until_status(pushed, "done")
    assert done.finished_at - called_at < START_SECONDS, "there is room for one more worker"
    mortal.until_done(2)


def test_launches_that_died_before_they_came_to_work_do_not_hold_up_the_next(
    mortal: Fleet,
) -> None:
    """A scaling pass recorded them, and its process was killed: nothing was started."""
    mortal.set(start_on_push=False, start_deadline_seconds=60)
    item = mortal.push(quick=True)
    seen = mortal.pool.observe()
    asked = model.Decision(
        pool=POOL,
        policy="test",
        direction="up",
        current=0,
        desired=2,
        reason="test",
        launch=2,
        max_workers=2,
        start_deadline_seconds=mortal.pool.state().settings.reservation_seconds,
    )
    recorded = mortal.pool.record(asked, version=seen.version)
    assert recorded is not None
    assert len(recorded.launched) == 2
    called_at = time.monotonic()
    check(mortal, item)
    mortal.until_status(item, "done")
    assert time.monotonic() - called_at < RESERVATION + 2.0 + START_SECONDS


def test_a_pass_that_was_requested_by_a_dead_process_does_not_hold_up_a_push(
    mortal: Fleet,
) -> None:
    mortal.set(start_on_push=False)
    mortal.push(quick=True)
    assert mortal.store.backend.request_check(POOL, 2)
    mortal.set(start_on_push=True)
    mortal.push(quick=True)
    mortal.until_done(2, within=LEASE + 2.0 + START_SECONDS)
