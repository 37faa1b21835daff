"""How many items are expected to come: a rate, and when a rise is believed."""

from __future__ import annotations

from typing import Any

from fleets_seen import NOW, seen

from sprat.model import Counts, Snapshot
from sprat.scaling import arrivals

COLD_START = 40.0


def after_passes(counts: list[Counts], *, every: float = 5.0) -> Snapshot:
    """The snapshot after as many passes, the notes of each in the next."""
    memory: Any = {}
    for n, each in enumerate(counts):
        last = seen(memory=memory, now=NOW + every * n).replace(counts=each)
        memory = arrivals.noted(last, COLD_START)
    return last


def test_a_steady_rate_is_found() -> None:
    steady = after_passes([Counts(claimed=3, done=10 * n) for n in range(200)])
    assert 1.9 < arrivals.rate(steady, COLD_START) < 2.1


def test_nothing_is_expected_before_anything_was_seen() -> None:
    assert arrivals.rate(seen(50), COLD_START) == 0.0


def test_a_rise_beyond_chance_is_believed_at_once() -> None:
    quiet = [Counts(done=n // 10) for n in range(100)]
    few, many = quiet[-1].replace(pending=1), quiet[-1].replace(pending=20)
    assert arrivals.rate(after_passes([*quiet, few]), COLD_START) < 0.1
    assert arrivals.rate(after_passes([*quiet, many]), COLD_START) > 1.0


def test_deleted_items_are_not_taken_for_departures_of_load() -> None:
    """Retention deletes a thousand finished items while five come."""
    before = [Counts(done=5000 + 5 * n) for n in range(100)]
    purged = Counts(done=4400, pending=5)
    assert arrivals.rate(after_passes([*before, purged]), COLD_START) > 0.8


def test_deciding_twice_at_one_moment_counts_once() -> None:
    once = after_passes([Counts(done=10 * n) for n in range(50)])
    again = once.replace(memory=arrivals.noted(once, COLD_START))
    assert arrivals.rate(again, COLD_START) == arrivals.rate(once, COLD_START)
