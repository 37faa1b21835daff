"""Trying again here and now (behaviour 4.8), and doing a thing once (behaviour 4.9)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprat.core.errors import InvalidInput, Poison, Transient
from sprat.local.idempotency import IdempotencyTracker
from sprat.local.retry import RetryConfig, retry_with_backoff
from sprat.local.sliding_percentile import SlidingPercentile

STEADY = RetryConfig(max_retries=2, jitter_pct=0.0)


class Flaky:
    """Fails so many times, then succeeds."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.failures = failures
        self.error = error or ValueError("not yet")
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        self.calls.append((args, kwargs))
        if len(self.calls) <= self.failures:
            raise self.error
        return "done"


def run(task: Callable[..., Any], **options: Any) -> tuple[bool, Exception | None, list[float]]:
    pauses: list[float] = []
    options = {"config": STEADY, "sleep": pauses.append, **options}
    ok, error = retry_with_backoff("job-1", task, **options)
    return ok, error, pauses


@pytest.mark.parametrize(
    ("failures", "ok", "calls", "pauses"),
    [
        (0, True, 1, []),
        (1, True, 2, [0.4]),
        (2, True, 3, [0.4, 0.8]),
        (3, False, 3, [0.4, 0.8]),
    ],
)
def test_4_8_two_retries_are_three_calls(
    failures: int, ok: bool, calls: int, pauses: list[float]
) -> None:
    task = Flaky(failures)
    assert run(task) == (ok, None if ok else task.error, pauses)
    assert len(task.calls) == calls


def test_4_8_arguments_are_passed_as_in_the_example() -> None:
    task = Flaky(1)
    success, error = retry_with_backoff(
        job_id="unique-job-123",
        task=task,
        args=("value1", "value2"),
        kwargs={"x": 1},
        config=RetryConfig(base_ms=0),
    )
    assert (success, error) == (True, None)
    assert task.calls == [(("value1", "value2"), {"x": 1})] * 2


def test_4_8_without_a_config_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_RETRIES", "1")
    task = Flaky(9)
    assert run(task, config=None)[0] is False
    assert len(task.calls) == 2


@given(st.integers(0, 200), st.floats(0, 1), st.floats(0, 1), st.floats(0, 10_000))
def test_4_8_pauses_double_and_stay_within_their_jitter(
    attempt: int, chance: float, jitter: float, base: float
) -> None:
    config = RetryConfig(base_ms=base, jitter_pct=jitter)
    middle = min(base * 2.0 ** min(attempt, 60), config.cap_ms) / 1000
    pause = config.delay_seconds(attempt, chance)
    assert pause >= 0
    assert middle * (1 - jitter) - 1e-9 <= pause <= middle * (1 + jitter) + 1e-9


@pytest.mark.parametrize(("chance", "pause"), [(0.0, 0.32), (0.5, 0.4), (1.0, 0.48)])
def test_4_8_jitter_goes_both_ways(chance: float, pause: float) -> None:
    config = RetryConfig(max_retries=1)
    _, _, pauses = run(Flaky(1), config=config, random=lambda: chance)
    assert pauses == [pytest.approx(pause)]


def test_some_errors_are_final() -> None:
    task = Flaky(9, Poison("never"))
    assert run(task) == (False, task.error, [])
    picky = Flaky(9, KeyError("k"))
    is_transient = lambda error: isinstance(error, TimeoutError)  # noqa: E731
    assert run(picky, is_transient=is_transient) == (False, picky.error, [])
    slow = Flaky(1, TimeoutError())
    assert run(slow, is_transient=is_transient) == (True, None, [0.4])


def test_an_error_may_say_how_long_to_wait() -> None:
    assert run(Flaky(1, Transient("throttled", delay_seconds=7)))[2] == [7]
    assert run(Flaky(1, Transient("throttled", delay_seconds=-7)))[2] == [0.0]
    assert run(Flaky(1, Transient("throttled")))[2] == [0.4]


def test_async_tasks_are_awaited() -> None:
    calls = []

    async def task() -> None:
        calls.append(1)
        if len(calls) < 2:
            raise ValueError("not yet")

    assert run(task) == (True, None, [0.4])


def test_leaving_the_program_is_not_retried() -> None:
    def leave() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(leave)


def test_4_8_config_from_the_environment() -> None:
    assert RetryConfig.from_env({}) == RetryConfig()
    usual = RetryConfig()
    assert (usual.max_retries, usual.base_ms, usual.jitter_pct) == (3, 400, 0.2)
    given = {"MAX_RETRIES": "0", "RETRY_BASE_MS": "12.5", "RETRY_JITTER_PCT": "1"}
    assert RetryConfig.from_env(given) == RetryConfig(max_retries=0, base_ms=12.5, jitter_pct=1)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"MAX_RETRIES": "many"}, "MAX_RETRIES must be a whole number"),
        ({"RETRY_BASE_MS": "-1"}, "RETRY_BASE_MS must be a number"),
        ({"RETRY_JITTER_PCT": "20"}, "RETRY_JITTER_PCT must be a number from 0 to 1, not 20"),
    ],
)
def test_4_8_nonsense_in_the_environment_is_refused(variables: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        RetryConfig.from_env(variables)


@pytest.mark.parametrize(
    "changes", [{"max_retries": -1}, {"base_ms": float("inf")}, {"jitter_pct": 1.1}], ids=str
)
def test_a_config_that_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    task = Flaky(0)
    with pytest.raises(InvalidInput, match=next(iter(changes))):
        run(task, config=RetryConfig(**changes))
    assert task.calls == []


# -- idempotency --------------------------------------------------------------------------------


def test_4_9_of_ten_threads_one_wins() -> None:
    tracker = IdempotencyTracker()
    for n in range(50):
        barrier = threading.Barrier(10)
        won: list[bool] = []

        def begin(job_id: str, barrier: threading.Barrier, won: list[bool]) -> None:
            barrier.wait()
            won.append(tracker.begin(job_id))

        threads = [
            threading.Thread(target=begin, args=(f"job-{n}", barrier, won)) for _ in range(10)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(won) == [False] * 9 + [True]


def test_4_9_entries_expire() -> None:
    now = [0.0]
    tracker = IdempotencyTracker(ttl_seconds=10, clock=lambda: now[0])
    assert tracker.begin("a")
    now[0] = 9.9
    assert not tracker.begin("a")
    assert "a" in tracker
    now[0] = 10.0
    assert "a" not in tracker
    assert tracker.begin("a")
    assert len(tracker) == 1


def test_4_9_a_failed_job_may_be_begun_again() -> None:
    tracker = IdempotencyTracker()
    assert tracker.begin("a")
    assert tracker.forget("a")
    assert not tracker.forget("a")
    assert tracker.begin("a")


def test_4_9_memory_is_bounded() -> None:
    tracker = IdempotencyTracker(max_entries=3)
    assert all(tracker.begin(job_id) for job_id in "abcd")
    assert len(tracker) == 3
    assert "a" not in tracker
    assert all(job_id in tracker for job_id in "bcd")


@pytest.mark.parametrize("arguments", [{"ttl_seconds": 0}, {"max_entries": 0}], ids=str)
def test_a_tracker_that_remembers_nothing_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        IdempotencyTracker(**arguments)


# -- recent durations ---------------------------------------------------------------------------


def test_a_percentile_of_the_last_minute_forgets() -> None:
    recent = SlidingPercentile(60.0)
    assert recent.percentile(0.95, 0.0) == 0.0
    for _ in range(10):
        recent.add(8.0, 5.0)
    assert recent.percentile(0.95, 50.0) == pytest.approx(8.0, rel=0.2)
    recent.add(1.0, 58.0)
    assert recent.percentile(0.95, 61.0) == pytest.approx(1.0, rel=0.2)
    assert recent.percentile(0.95, 1000.0) == 0.0
