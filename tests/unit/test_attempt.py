"""One attempt at a job: what the job raises or returns is its outcome, whatever it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import sprat
from sprat.core import payload
from sprat.store.open_store import open_store
from sprat.store.store import Store
from sprat.worker import processor
from sprat.worker.job import Job, Stopped
from sprat.worker.job_process import JobProcess
from sprat.worker.processor import Outcome, attempt


@pytest.fixture
def job() -> Iterator[Job]:
    with open_store("memory://") as store:
        yield Job(*claimed(store))


def claimed(store: Store) -> Any:
    pool = store.pool("numbers")
    pool.push(1)
    worker = store.workers.register(sprat.WorkerRegistration(worker_id="w"))
    return pool, pool.claim(worker)


class Mute(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt

    __repr__ = __str__


class MuteFailure(sprat.Poison, Mute):
    __str__ = Mute.__str__


def raising(error: BaseException) -> processor.Processor:
    def call(_: Job) -> None:
        raise error

    return call


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), GeneratorExit(), BaseException("b"), SystemExit(3), Mute()]
)
def test_whatever_a_job_raises_is_its_failure_with_a_traceback(
    job: Job, error: BaseException
) -> None:
    outcome = attempt(raising(error), job)
    assert (outcome.ok, outcome.poison) == (False, False)
    assert outcome.error is not None
    assert outcome.error.startswith(f"{type(error).__name__}: ")
    assert "in call" in outcome.error


def test_error_that_cannot_be_printed_is_named(job: Job) -> None:
    error = attempt(raising(Mute()), job).error
    assert error is not None
    assert error.startswith("Mute: <str() of this Mute raised KeyboardInterrupt>\n")
    failure = attempt(raising(MuteFailure()), job)
    assert failure.poison
    assert failure.error == "<str() of this MuteFailure raised KeyboardInterrupt>"


def test_stopped_passes_through(job: Job) -> None:
    with pytest.raises(Stopped, match="too late"):
        attempt(raising(Stopped("too late")), job)


@sprat.task
def interrupted() -> None:
    raise KeyboardInterrupt


def test_ctrl_c_ends_an_inline_run() -> None:
    with pytest.raises(KeyboardInterrupt), sprat.inline():
        interrupted.push()


def test_child_reports_what_its_work_raises() -> None:
    def work() -> Outcome:
        raise GeneratorExit("done")

    outcome = JobProcess(work).wait(30)
    assert outcome is not None
    assert outcome.error is not None
    assert outcome.error.startswith("GeneratorExit: done\nTraceback")
    assert "in work" in outcome.error


CUT = "... (cut after 2,000 characters)"


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ({"chart": b"\x89PNG"}, "{'chart': b'\\x89PNG'}"),
        ([Mute()], "<repr() of this list raised KeyboardInterrupt>"),
        (b"x" * 3000, "b'" + "x" * 1998 + CUT),
        (b"x" * 1990, "b'" + "x" * 1990 + "'"),
        ("x" * payload.MAX_BYTES, "'" + "x" * 1999 + CUT),
        ([7] * payload.MAX_BYTES, "[" + ("7, " * 667)[:1999] + CUT),
    ],
)
def test_result_that_cannot_be_stored_is_kept_as_text(job: Job, result: object, shown: str) -> None:
    outcome = attempt(lambda _: result, job)
    assert (outcome.ok, outcome.poison, outcome.result) == (False, True, None)
    assert outcome.error is not None
    why, _, rest = outcome.error.partition("\n")
    assert why.startswith("the result is ")
    assert why.endswith("; the job ran, and would run again to the same end")
    assert rest == f"The result was: {shown}"
