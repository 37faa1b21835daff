"""Retry or poison: tables of cases, and what holds for every history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprat.core import model, retry_rules
from sprat.core.retry_rules import (
    ANNOUNCED,
    GIVE_BACKS,
    UNANNOUNCED,
    AttemptCounts,
    NextState,
    after_crash,
    after_failure,
)

FAILURES = (model.FAIL, model.TRANSIENT, model.POISON, model.HAND_BACK)


def tally(attempts: int, max_retries: int, **more: int | bool) -> AttemptCounts:
    return AttemptCounts(attempts=attempts, max_retries=max_retries, **more)


def shown(verdict: NextState) -> tuple[str, int, bool, int]:
    return verdict.status, verdict.attempts, verdict.suspect, verdict.given_back


@pytest.mark.parametrize(
    ("before", "outcome", "after"),
    [
        (tally(1, 3), "fail", ("pending", 1, False, 0)),
        (tally(2, 3), "fail", ("pending", 2, False, 0)),
        (tally(3, 3), "fail", ("poisoned", 3, False, 0)),
        (tally(1, 1), "fail", ("poisoned", 1, False, 0)),
        (tally(1, 3), "poison", ("poisoned", 1, False, 0)),
        (tally(1, 3), "transient", ("pending", 0, False, 1)),
        (tally(3, 3), "transient", ("pending", 2, False, 1)),
        (tally(3, 3), "hand_back", ("pending", 2, False, 1)),
        (tally(0, 3, ahead=UNANNOUNCED), "fail", ("pending", 1, False, 0)),
        (tally(1, 3, ahead=ANNOUNCED), "poison", ("poisoned", 2, False, 0)),
        (tally(1, 3, ahead=ANNOUNCED), "transient", ("pending", 1, False, 1)),
        (tally(0, 3, ahead=UNANNOUNCED), "hand_back", ("pending", 0, False, 1)),
        (tally(1, 3, suspect=True), "fail", ("pending", 1, False, 0)),
        (tally(1, 3, suspect=True), "transient", ("pending", 0, True, 1)),
        (tally(1, 3, suspect=True), "hand_back", ("pending", 0, True, 1)),
        (tally(1, 3, given_back=GIVE_BACKS - 1), "hand_back", ("pending", 0, False, GIVE_BACKS)),
        (tally(1, 3, given_back=GIVE_BACKS), "hand_back", ("pending", 1, False, GIVE_BACKS)),
        (tally(3, 3, given_back=GIVE_BACKS), "hand_back", ("poisoned", 3, False, GIVE_BACKS)),
        (tally(1, 1, given_back=GIVE_BACKS), "park", ("pending", 0, False, GIVE_BACKS + 1)),
        (tally(1, 3, suspect=True), "park", ("pending", 0, True, 1)),
    ],
)
def test_after_failure(
    before: AttemptCounts, outcome: str, after: tuple[str, int, bool, int]
) -> None:
    assert shown(after_failure(before, outcome)) == after


@pytest.mark.parametrize(
    ("transients", "bound", "after"),
    [
        (1, 2, ("pending", 0, False, 1)),
        (2, 2, ("poisoned", 1, False, 0)),
        (0, 0, ("poisoned", 1, False, 0)),
        (10_000, None, ("pending", 0, False, 1)),
    ],
)
def test_transient_failures_are_uncharged_up_to_their_bound(
    transients: int, bound: int | None, after: tuple[str, int, bool, int]
) -> None:
    verdict = after_failure(tally(1, 1, transients=transients), model.TRANSIENT, bound)
    assert shown(verdict) == after
    assert verdict.transients == transients + (verdict.status == model.PENDING)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (tally(1, 1), ("pending", 0, False, 1)),
        (tally(1, 1, given_back=GIVE_BACKS), ("poisoned", 1, False, GIVE_BACKS)),
        (tally(0, 3, ahead=UNANNOUNCED), ("pending", 0, False, 0)),
        (tally(0, 3, ahead=ANNOUNCED), ("pending", 0, False, 0)),
        (tally(1, 3, suspect=True), ("pending", 0, True, 1)),
    ],
)
def test_crash_in_an_outage_is_not_charged(
    before: AttemptCounts, after: tuple[str, int, bool, int]
) -> None:
    assert shown(after_crash(before, in_outage=True)) == after


@pytest.mark.parametrize(
    ("before", "never_started", "after"),
    [
        (tally(1, 3), False, ("pending", 1, False, 0)),
        (tally(3, 3), False, ("poisoned", 3, False, 0)),
        (tally(1, 1), False, ("poisoned", 1, False, 0)),
        (tally(1, 3, suspect=True), False, ("pending", 2, False, 0)),
        (tally(2, 3, suspect=True), False, ("poisoned", 3, False, 0)),
        (tally(3, 3, suspect=True), False, ("poisoned", 3, False, 0)),
        (tally(0, 3, ahead=ANNOUNCED), False, ("pending", 0, False, 0)),
        (tally(0, 3, ahead=UNANNOUNCED), False, ("pending", 0, True, 0)),
        (tally(0, 3, ahead=UNANNOUNCED), True, ("pending", 0, False, 0)),
        (tally(1, 3, given_back=7), False, ("pending", 1, False, 7)),
    ],
)
def test_after_crash(
    before: AttemptCounts, never_started: bool, after: tuple[str, int, bool, int]
) -> None:
    assert shown(after_crash(before, never_started=never_started)) == after


@pytest.mark.parametrize(
    ("suspect", "attempts", "max_retries", "may"),
    [
        (False, 0, 3, True),
        (False, 1, 3, True),
        (False, 2, 3, False),
        (False, 0, 1, False),
        (False, 0, 2, True),
        (True, 0, 9, False),
    ],
)
def test_suspects_and_last_attempts_run_alone(
    suspect: bool, attempts: int, max_retries: int, may: bool
) -> None:
    may_run = retry_rules.may_run_ahead(suspect=suspect, attempts=attempts, max_retries=max_retries)
    assert may_run is may


class Life:
    """An item that is claimed again and again."""

    def __init__(self, max_retries: int) -> None:
        self.now = tally(0, max_retries)

    def claim(self, ahead: int) -> None:
        may = retry_rules.may_run_ahead(
            suspect=self.now.suspect,
            attempts=self.now.attempts,
            max_retries=self.now.max_retries,
        )
        charged = not ahead or not may
        self.now = self.now.replace(
            ahead=0 if charged else ahead, attempts=self.now.attempts + charged
        )

    def end(self, verdict: NextState) -> bool:
        """True when the item is finished."""
        self.now = tally(
            verdict.attempts,
            self.now.max_retries,
            suspect=verdict.suspect,
            given_back=verdict.given_back,
            transients=verdict.transients,
        )
        return verdict.status == model.POISONED


steps = st.lists(
    st.tuples(
        st.sampled_from([0, ANNOUNCED, UNANNOUNCED]),
        st.sampled_from([*FAILURES, "crash", "crash unstarted"]),
    ),
    max_size=60,
)


@given(st.integers(1, 6), steps)
def test_attempts_stay_between_zero_and_max_retries(
    max_retries: int, history: list[tuple[int, str]]
) -> None:
    life = Life(max_retries)
    for ahead, outcome in history:
        life.claim(ahead)
        assert 0 <= life.now.attempts <= max_retries
        if outcome.startswith("crash"):
            verdict = after_crash(life.now, never_started=outcome != "crash")
        else:
            verdict = after_failure(life.now, outcome)
        assert 0 <= verdict.attempts <= max_retries
        assert verdict.status in (model.PENDING, model.POISONED)
        if verdict.status == model.PENDING:
            assert verdict.attempts < max_retries  # so that it can be started once more
        if life.end(verdict):
            break


@given(st.integers(1, 8), st.lists(st.booleans(), max_size=20))
def test_job_that_kills_every_worker_is_poisoned_after_exactly_max_retries_starts(
    max_retries: int, claimed_ahead_but_unstarted: list[bool]
) -> None:
    """However often it was claimed ahead, announced, by workers that died of something else."""
    life = Life(max_retries)
    starts = 0
    for unstarted in [*claimed_ahead_but_unstarted, *[False] * max_retries]:
        life.claim(ANNOUNCED if unstarted else 0)
        starts += not life.now.ahead
        if life.end(after_crash(life.now)):
            break
    assert starts == max_retries


@given(st.integers(1, 8), st.lists(st.booleans(), min_size=40, max_size=40))
def test_job_that_kills_every_worker_starts_at_most_max_retries_times_even_unannounced(
    max_retries: int, ahead: list[bool]
) -> None:
    """An unannounced start is doubtful, and paid with the next crash: none is for free."""
    life = Life(max_retries)
    starts = 0
    for is_ahead in ahead:
        life.claim(UNANNOUNCED if is_ahead else 0)
        starts += 1  # it starts each time, and kills its worker
        if life.end(after_crash(life.now)):
            break
    assert starts == max_retries


@given(st.integers(1, 5), st.sampled_from([model.TRANSIENT, model.HAND_BACK]))
def test_given_back_attempts_run_out(max_retries: int, outcome: str) -> None:
    life = Life(max_retries)
    rounds = 0
    finished = False
    while not finished:
        life.claim(0)
        finished = life.end(after_failure(life.now, outcome, model.MAX_TRANSIENT))
        rounds += 1
    bound = GIVE_BACKS if outcome == model.HAND_BACK else model.MAX_TRANSIENT
    assert rounds == bound + max_retries


@given(st.integers(0, 8), st.integers(1, 8), st.booleans(), st.sampled_from(FAILURES))
def test_more_attempts_never_make_poison_less_likely(
    attempts: int, max_retries: int, suspect: bool, outcome: str
) -> None:
    fewer = after_failure(tally(attempts, max_retries, suspect=suspect), outcome)
    more = after_failure(tally(attempts + 1, max_retries, suspect=suspect), outcome)
    assert fewer.status == model.PENDING or more.status == model.POISONED


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1.0, "stopped after 1 second"),
        (0.5, "stopped after 0.5 seconds"),
        (90, "stopped after 90 seconds"),
    ],
)
def test_a_time_out_is_said_with_its_seconds(seconds: float, said: str) -> None:
    assert retry_rules.stopped_after(seconds) == said
