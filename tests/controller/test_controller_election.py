"""Two controllers, as real processes: one acts, and another takes over from who is gone."""

from __future__ import annotations

import signal

import pytest
from controllers import Place, Program, ask, eventually


@pytest.fixture
def two(place: Place) -> tuple[Program, Program]:
    """The one that leads, and the one that watches."""
    place.config(f"store: {place.url}\nalgorithm: queue_depth\n", max_replicas=3)
    listening = ("--listen", "127.0.0.1:0")
    first = place.controller(*listening)
    eventually(lambda: is_leader(first))
    second = place.controller(*listening)
    eventually(lambda: ask(port_of(second), "/readyz")[0] == 200, second.text)
    return first, second


def port_of(controller: Program) -> int:
    return int(controller.until(r"listening on http://127.0.0.1:(\d+)")[1])


def is_leader(controller: Program) -> bool:
    return 'is_leader{pool="papers",group=""} 1' in ask(port_of(controller), "/metrics")[1]


def fleets(place: Place) -> list[int]:
    """How many workers there were after each decision."""
    return [one.current + len(one.launched) for one in place.pool.decisions(limit=100)]


def test_one_acts_and_the_other_watches(place: Place, two: tuple[Program, Program]) -> None:
    place.push(30, seconds=0.02)
    place.until_done(30)
    first, second = two
    assert (is_leader(first), is_leader(second)) == (True, False)
    assert "launched" in first.text()
    assert "launched" not in second.text()
    assert max(fleets(place)) <= 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_another_takes_over(place: Place, two: tuple[Program, Program], number: int) -> None:
    """After kill -9 within the lease (of 5 seconds), after SIGTERM within a third of it."""
    first, second = two
    place.push(10, seconds=0.05)
    first.until("launched")
    first.signal(number)
    assert first.process.wait(60) == (0 if number == signal.SIGTERM else -signal.SIGKILL)
    place.push(20, seconds=0.05)
    eventually(lambda: is_leader(second), second.text)
    place.until_done(30)
    eventually(lambda: not place.workers("starting", "active", "terminating"), place.workers)
    assert max(fleets(place)) <= 3
    assert sum(place.runs().values()) == 30
    assert second.stop() == 0


def test_a_leader_that_slept_does_no_harm(place: Place, two: tuple[Program, Program]) -> None:
    first, second = two
    first.signal(signal.SIGSTOP)
    eventually(lambda: is_leader(second), second.text)
    place.push(40, seconds=0.05)
    second.until("launched")
    first.signal(signal.SIGCONT)
    eventually(lambda: not is_leader(first))
    place.until_done(40)
    eventually(lambda: not place.workers("starting", "active", "terminating"), place.workers)
    assert is_leader(second)
    assert "launched" not in first.text()
    assert max(fleets(place)) <= 3
    assert sum(place.runs().values()) == 40
