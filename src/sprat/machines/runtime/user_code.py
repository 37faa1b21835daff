"""Runs the user's code, here or in a child process where it can be stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sprat.core import jsontext, payload
from sprat.core.runtime import runtime
from sprat.machines.stepping import Failed, kinds_of
from sprat.worker.job_process import JobProcess
from sprat.worker.processor import Outcome, failed


class WorkFailed(Failed):
    """What the user's code raised, with what it asks for: try again, later, or never."""

    def __init__(self, message: str, kinds: tuple[str, ...], outcome: Outcome) -> None:
        super().__init__(message, kinds)
        self.outcome = outcome


def here(work: Callable[[], Any]) -> Any:
    """Call it in this process. What it returns has to be JSON."""
    return jsontext.loads(payload.encode(work(), "output"))


def in_a_child(work: Callable[[], Any], look_after: Callable[[], float]) -> Any:
    """Call it in a child. `look_after` is called again and again: it raises to have the child
    stopped, and says how long it need not be called."""
    child = JobProcess(lambda: _told(work))
    is_over = False
    try:
        while True:
            outcome = child.wait(look_after())
            if outcome is not None:
                is_over = True
                return _result(outcome)
    finally:
        if not is_over:
            child.kill()


def _told(work: Callable[[], Any]) -> Outcome:
    """In the child: how it ended; an error as its kinds and message, for there is no other way."""
    try:
        return Outcome(ok=True, result=payload.encode([None, "", work()], "output"))
    except (Exception, SystemExit) as error:  # noqa: BLE001  (the user's code)
        told = failed(error)
        text = payload.encode([list(kinds_of(error)), str(error), None], "error")
        return told.replace(result=text)


def _result(outcome: Outcome) -> Any:
    if outcome.result is None:
        kinds = ("ProcessDied", "Exception")
        raise WorkFailed(outcome.error or "the process died", kinds, outcome)
    kinds, message, value = jsontext.loads(outcome.result)
    if outcome.ok:
        return value
    raise WorkFailed(message, tuple(kinds), outcome.replace(result=None))


class TimeLimits:
    """The time limits of the states that are running, the outermost first."""

    def __init__(self) -> None:
        self._ends: list[tuple[float, object]] = []

    def __bool__(self) -> bool:
        return bool(self._ends)

    def add(self, seconds: float) -> object:
        limit = object()
        self._ends.append((runtime.monotonic() + seconds, limit))
        return limit

    def lift(self, limit: object) -> None:
        self._ends = [(end, one) for end, one in self._ends if one is not limit]

    def reached(self) -> object | None:
        """The outermost limit that is reached, if any is."""
        now = runtime.monotonic()
        return next((limit for end, limit in self._ends if end <= now), None)

    def left(self) -> float | None:
        if not self._ends:
            return None
        return max(0.0, min(end for end, _ in self._ends) - runtime.monotonic())
