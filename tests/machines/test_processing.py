"""What becomes of a job whose machine ends with an error."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NoReturn

import pytest
from rooms import write

import sprat
from sprat.core.model import WorkerRegistration
from sprat.worker.job import Job
from sprat.worker.processor import Outcome, attempt, load

HERE = Path(__file__).stem  # its functions are the actions


def be_throttled(_: object) -> NoReturn:
    raise sprat.Transient("throttled", delay_seconds=7)


def give_up(_: object) -> NoReturn:
    raise sprat.Poison("never")


def be_wrong(_: object) -> NoReturn:
    raise ValueError("wrong")


def hang(_: object) -> None:
    time.sleep(60)


def outcome(place: Path, action: str, timeout: float | None) -> Outcome:
    """How an attempt at a job ends whose machine has one step."""
    limit = "" if timeout is None else f"timeout: {timeout}, "
    step = f"{{type: initial, action: '{HERE}:{action}', {limit}transitions: [{{to: end}}]}}"
    write(place, "job", f"name: job\nstates:\n  start: {step}\n  end: {{type: final}}")
    with sprat.open_store("memory://") as store:
        pool = store.pool("p")
        pool.configure(machine=str(place / "job.yml"))
        pool.push({})
        item = pool.claim(store.workers.register(WorkerRegistration(worker_id="w", pool_id="p")))
        assert item is not None
        return attempt(load(pool.state().settings), Job(pool, item))


@pytest.mark.parametrize("timeout", [None, 30], ids=["here", "in a child"])
def test_an_error_that_no_state_catches_says_what_to_do_with_the_job(
    tmp_path: Path, timeout: float | None
) -> None:
    throttled = outcome(tmp_path, "be_throttled", timeout)
    assert (throttled.error, throttled.transient) == ("throttled", True)
    assert throttled.delay_seconds == 7
    assert outcome(tmp_path, "give_up", timeout) == Outcome(ok=False, error="never", poison=True)
    wrong = outcome(tmp_path, "be_wrong", timeout)
    assert str(wrong.error).startswith("ValueError: wrong\n")
    assert (wrong.transient, wrong.poison) == (False, False)


def test_a_state_that_takes_too_long_costs_an_attempt(tmp_path: Path) -> None:
    """A time-out of its own is no fault of a server: it may well hang again, for ever."""
    late = outcome(tmp_path, "hang", 0.2)
    assert "StateTimeout" in str(late.error)
    assert not late.transient
