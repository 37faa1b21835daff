"""Jobs that have become longer are noticed while they run."""

from __future__ import annotations

import random
from typing import Any

import pytest
from fleets_seen import NOW, fleet, pool_settings, seen

from sprat.model import Counts, Snapshot, Stats
from sprat.scaling import policies, slowdown

MEAN = 20.0


def after_passes(counts: list[Counts]) -> Snapshot:
    """The snapshot after as many passes, the notes of each in the next."""
    memory: Any = {}
    for n, each in enumerate(counts):
        last = seen(memory=memory, now=NOW + 5.0 * n).replace(counts=each)
        memory = slowdown.noted(last, mean=MEAN)
    return last


def factor(counts: list[Counts]) -> float:
    return factor_of(after_passes(counts))


def factor_of(last: Snapshot) -> float:
    return slowdown.factor(last, mean=MEAN, scv=1.0)


def ending(per_pass: float, *, busy: int, passes: int, since: int = 0) -> list[Counts]:
    return [Counts(claimed=busy, done=since + int(per_pass * n)) for n in range(passes)]


# 8 are busy, 2 jobs end in the 5 seconds between two passes: 20 seconds a job
USUAL = ending(2.0, busy=8, passes=200)


def test_jobs_as_long_as_before_change_nothing() -> None:
    assert factor(USUAL) == 1.0


def test_before_anything_ended_nothing_is_known() -> None:
    assert factor_of(seen(50)) == 1.0
    assert factor(ending(0.0, busy=8, passes=50)) == 1.0


def test_longer_jobs_are_noticed_before_the_first_of_them_ends() -> None:
    stuck = ending(0.0, busy=8, passes=9, since=USUAL[-1].done)  # 45 seconds without an end
    assert factor([*USUAL, *stuck[:2]]) < 1.2
    assert factor([*USUAL, *stuck]) > 1.5


def test_longer_jobs_are_noticed_in_less_time_than_one_takes() -> None:
    """Twice, though five times would be right: the rest may be chance, for a while."""
    longer = ending(2.0, busy=40, passes=12, since=USUAL[-1].done)  # 100 seconds a job
    assert 1.8 < factor([*USUAL, *longer]) < 5.0


def test_shorter_jobs_are_left_to_the_mean() -> None:
    assert factor([*USUAL, *ending(20.0, busy=8, passes=20, since=USUAL[-1].done)]) == 1.0


def test_a_burst_of_jobs_as_long_as_before_is_no_slowdown() -> None:
    """80 begin at once where 8 were busy: nobody can have ended yet."""
    begun = ending(2.0, busy=80, passes=4, since=USUAL[-1].done)
    assert factor([*USUAL, *begun]) < 1.5


def test_one_long_job_is_no_slowdown() -> None:
    few = [Counts(claimed=1, done=n // 4) for n in range(100)]
    assert factor([*few, *ending(0.0, busy=1, passes=6, since=few[-1].done)]) < 1.5


def test_chance_is_seldom_taken_for_a_slowdown() -> None:
    source, done, factors = random.Random(7), 0, []
    counts = []
    for _ in range(400):
        done += sum(source.random() < 0.25 for _ in range(8))  # 8 busy, 20 s each, by chance
        counts.append(Counts(claimed=8, done=done))
        if len(counts) > 50 and len(counts) % 10 == 0:
            factors.append(factor(counts))
    assert sorted(factors)[len(factors) // 2] == 1.0
    assert max(factors) < 2.0


def test_deleted_items_and_long_pauses_are_no_slowdown() -> None:
    purged = [Counts(claimed=8, done=5 + 2 * n) for n in range(10)]
    assert factor([*USUAL, *purged]) < 1.3
    idle = after_passes(USUAL)
    memory = slowdown.noted(idle, mean=MEAN)
    much_later = seen(memory=memory, now=idle.now + 7200.0).replace(counts=Counts(done=500))
    assert factor_of(much_later) == 1.0


def test_deciding_twice_at_one_moment_counts_once() -> None:
    once = after_passes([*USUAL, *ending(0.0, busy=8, passes=9, since=USUAL[-1].done)])
    again = once.replace(memory=slowdown.noted(once, mean=MEAN))
    assert factor_of(again) == pytest.approx(factor_of(once))


def test_the_policy_launches_for_jobs_that_became_longer_and_says_so() -> None:
    settings = pool_settings("slo", high=100, wait_seconds=120, cold_start_seconds=40)
    stuck = ending(0.0, busy=8, passes=20, since=USUAL[-1].done)
    before = after_passes([*USUAL, *stuck]).replace(
        workers=fleet(busy=8),
        stats=Stats(seconds=600.0, finished=200, run_mean=MEAN, run_scv=1.0),
        oldest_ready_seconds=5.0,
    )
    waiting = before.replace(counts=before.counts.replace(pending=20))
    unaware = waiting.replace(memory={})
    made = policies.decide(waiting, settings)
    assert made.launch > policies.decide(unaware, settings).launch
    assert "as long as before, a start 40 s" in made.reason
    assert made.inputs["service_mean"] > 1.5 * made.inputs["service_usual"]
