"""How many items are expected to come: a rate, and when a rise is believed."""

from __future__ import annotations

from typing import Any

from fleets_seen import NOW, pool_settings, seen

from sprat.core.model import Counts, Snapshot
from sprat.scaling import policies
from sprat.scaling.slo import arrivals
from sprat.scaling.slo.memory import Memory

COLD_START = 40.0
TARGET = pool_settings("slo", 0, 100, wait_seconds=30, cold_start_seconds=COLD_START)


def after_passes(counts: list[Counts], *, every: float = 5.0) -> tuple[Snapshot, Memory]:
    """What the last of as many passes sees, with the notes of the one before it."""
    memory, before = Memory(), Memory()
    for n, each in enumerate(counts):
        last, before = seen(now=NOW + every * n).replace(counts=each), memory
        memory = Memory(arrivals=arrivals.noted(last, before, COLD_START))
    return last, before


def rates(last: Snapshot, memory: Memory) -> arrivals.Rates:
    return arrivals.rates(last, memory, COLD_START)


def came(total: int, *, at: float, memory: Any) -> Snapshot:
    """All but the last three are done."""
    counts = Counts(claimed=3, done=max(0, total - 3))
    return seen(busy=3, memory=memory, now=NOW + at).replace(counts=counts)


def test_a_steady_rate_is_found() -> None:
    steady = after_passes([Counts(claimed=3, done=10 * n) for n in range(200)])
    assert 1.9 < rates(*steady).expected < 2.1


def test_nothing_is_expected_before_anything_was_seen() -> None:
    assert rates(seen(50), Memory()).expected == 0.0


def test_a_rise_beyond_chance_is_believed_at_once() -> None:
    quiet = [Counts(done=n // 10) for n in range(100)]
    few, many = quiet[-1].replace(pending=1), quiet[-1].replace(pending=20)
    assert rates(*after_passes([*quiet, few])).expected < 0.1
    risen = rates(*after_passes([*quiet, many]))
    assert risen.expected > 1.0
    assert risen.steady < 0.5 * risen.expected, "who is calm does not take it to go on"


def test_deleted_items_are_not_taken_for_departures_of_load() -> None:
    """Retention deletes a thousand finished items while five come."""
    before = [Counts(done=5000 + 5 * n) for n in range(100)]
    purged = Counts(done=4400, pending=5)
    assert rates(*after_passes([*before, purged])).expected > 0.8


def test_the_load_that_came_is_what_it_would_keep_busy() -> None:
    ten_in_five_seconds, memory = after_passes([Counts(), Counts(pending=10)])
    assert arrivals.offered(ten_in_five_seconds, memory.arrivals, 30.0) == 10 / 5 * 30
    assert arrivals.offered(seen(50), None, 30.0) is None


def test_a_pass_that_follows_at_once_counts_nothing() -> None:
    """A push starts it: what came is counted by the next one, five seconds after the last."""
    memory: Any = {}
    for n in range(20):
        memory = policies.decide(came(10 * n, at=5.0 * n, memory=memory), TARGET).memory
    brief = policies.decide(came(230, at=97.0, memory=memory), TARGET)
    kept = ("arrivals", "loads", "margin", "shadows")
    assert [brief.memory[name] for name in kept] == [memory[name] for name in kept]
    after = policies.decide(came(230, at=100.0, memory=brief.memory), TARGET)
    assert after.memory["arrivals"]["total"] == 230
    assert after.inputs["coming"] > brief.inputs["coming"]


def test_deciding_twice_at_one_moment_counts_once() -> None:
    once, memory = after_passes([Counts(done=10 * n) for n in range(50)])
    again = Memory(arrivals=arrivals.noted(once, memory, COLD_START))
    assert rates(once, again).expected == rates(once, memory).expected
