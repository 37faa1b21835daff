"""What becomes of an item whose attempt did not succeed. Pure: no clock, no store, no randomness.

`attempts` counts recorded starts. An item that was claimed ahead of its turn is charged only when
it starts. Where a worker may start such items unannounced (many tiny jobs, one write), its death
leaves a doubt: the item becomes a *suspect*, runs alone next time, and pays for the doubtful start
only if it takes its next worker down too. docs/decisions/0004-claim-ahead.md tells why.
"""

from __future__ import annotations

from sprat.core import model
from sprat.core.record import Record

ANNOUNCED = 1  # claimed ahead; the worker says so before it starts the item
UNANNOUNCED = 2  # claimed ahead; the worker may start the item without a word
GIVE_BACKS = 1000  # attempts given back to one item before they count after all


def stopped_after(seconds: float) -> str:
    """What is reported of what that ran longer than it may."""
    return f"stopped after {seconds:g} second{'' if seconds == 1 else 's'}"


class AttemptCounts(Record):
    """The part of an item that decides whether it is tried again."""

    attempts: int
    max_retries: int
    ahead: int = 0
    suspect: bool = False
    given_back: int = 0
    transients: int = 0


class NextState(Record):
    """The item's next state."""

    status: str
    attempts: int
    suspect: bool
    given_back: int
    transients: int = 0


def may_run_ahead(*, suspect: bool, attempts: int, max_retries: int) -> bool:
    """A suspect and an item on its last attempt run alone, so that every crash is counted."""
    return not suspect and attempts + 1 < max_retries


def after_failure(
    tally: AttemptCounts, outcome: str, max_transient: int | None = None
) -> NextState:
    """A job that ended in its worker's hands without a result. Transient failures (up to
    `max_transient` of them), a graceful hand-back and an unknown task give the attempt back."""
    started = tally.attempts + (1 if tally.ahead else 0)
    if _gives_back(tally, outcome, max_transient):
        return NextState(
            status=model.PENDING,
            attempts=tally.attempts if tally.ahead else max(0, started - 1),
            suspect=tally.suspect,
            given_back=tally.given_back + 1,
            transients=tally.transients + (outcome == model.TRANSIENT),
        )
    out = outcome == model.POISON or started >= tally.max_retries
    return NextState(
        status=model.POISONED if out else model.PENDING,
        attempts=started,
        suspect=False,
        given_back=tally.given_back,
        transients=tally.transients,
    )


def _gives_back(tally: AttemptCounts, outcome: str, max_transient: int | None) -> bool:
    if outcome == model.PARK:
        return True
    if outcome == model.TRANSIENT:
        return max_transient is None or tally.transients < max_transient
    return outcome == model.HAND_BACK and tally.given_back < GIVE_BACKS


def after_crash(
    tally: AttemptCounts, *, never_started: bool = False, in_outage: bool = False
) -> NextState:
    """A job whose worker died; `never_started` when its parent process knows. A worker that was
    silent since an outage of the store (`in_outage`) may have died of it: the attempt is given
    back."""
    if tally.ahead:
        doubtful = tally.ahead == UNANNOUNCED and not never_started and not in_outage
        return NextState(
            status=model.PENDING,
            attempts=tally.attempts,
            suspect=tally.suspect or doubtful,
            given_back=tally.given_back,
            transients=tally.transients,
        )
    if in_outage:
        return after_failure(tally, model.HAND_BACK)
    started = tally.attempts + (1 if tally.suspect else 0)
    return NextState(
        status=model.POISONED if started >= tally.max_retries else model.PENDING,
        attempts=min(started, tally.max_retries),
        suspect=False,
        given_back=tally.given_back,
        transients=tally.transients,
    )


def backoff(tries: int, *, base: float, cap: float, jitter: float) -> float:
    """Seconds to wait after this many tries: doubling from `base` up to `cap`. `jitter`, a random
    number from 0 to 1, takes up to half of it away, so that many failures do not return as one."""
    full = min(cap, base * 2.0 ** min(max(tries, 1) - 1, 60))
    return full * (1.0 - 0.5 * jitter)
