"""Turns a pool's settings into something that can be called with a job: the processor."""

from __future__ import annotations

import os
import sys

from sprat.core import extensions, model, payload, retry_rules
from sprat.core.errors import InvalidInput, JobError, Poison, SpratError, Throttled, Transient
from sprat.core.record import Record
from sprat.core.runtime import runtime
from sprat.worker.handlers import Handlers, UnknownTask
from sprat.worker.job import Stopped, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from sprat.core.model import PoolSettings
    from sprat.worker.job import Job

    Processor = Callable[[Job], Any]

STDERR_CHARS = 4000  # of a failed command's complaint that are kept
RESULT_CHARS = 2000  # of a result that cannot be stored that are kept with the error
# Time-outs and broken connections of HTTP and model clients that do not derive from Python's own.
TRANSIENT_NAMES = frozenset(
    (
        *("Timeout", "TimeoutException", "ConnectTimeout", "ReadTimeout", "NetworkError"),
        *("ConnectError", "RemoteProtocolError", "APITimeoutError", "APIConnectionError"),
    )
)
PARK_BASE_SECONDS = 0.5  # before a job of an unknown task is offered again, doubled each time
PARK_CAP_SECONDS = 60.0
TRY_AGAIN = 75  # EX_TEMPFAIL: a command exits with it to fail transiently


class Outcome(Record):
    """How an attempt ended. `result` is JSON text."""

    ok: bool
    result: str | None = None
    error: str | None = None
    transient: bool = False
    poison: bool = False
    delay_seconds: float | None = None
    throttled: bool = False  # the job asked for a pause of the whole pool
    slowed: bool = False  # a service answered the job that it should come again later
    parked: bool = False  # the worker does not know the task

    @property
    def is_throttled(self) -> bool:
        return self.throttled or self.slowed


DONE = Outcome(ok=True)


class Ended(SpratError):
    """What a processor raises that knows how its attempt ended."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.error)
        self.outcome = outcome


def load(settings: PoolSettings) -> Processor:
    """The processor that the settings name; importing user code happens here, once."""
    if settings.directory is not None:
        _enter(settings.directory)
    if settings.handler is not None:
        return Handlers(settings.handler, settings.tasks)
    if settings.command is not None:
        return _command(settings.command)
    if settings.machine is not None:
        made: Processor = extensions.load("machine", "processor")(settings)
        return made
    raise InvalidInput("the pool has no handler and no command: `sprat apply` gives it one")


def attempt(
    processor: Processor, job: Job, *, catch: tuple[type[BaseException], ...] = (BaseException,)
) -> Outcome:
    """Run the job here and return how it ended. What the job raises is its outcome. Stopped, which
    the worker raises, and what is not in `catch` pass through."""
    try:
        result = run(processor, job)
        return DONE if result is None else Outcome(ok=True, result=_encoded(result))
    except Stopped:
        raise
    except catch as error:
        return failed(error)


def failed(error: BaseException) -> Outcome:
    if isinstance(error, Ended):
        return error.outcome
    if isinstance(error, UnknownTask):
        return Outcome(ok=False, error=str(error), parked=True)
    delay = _delay(error)
    return Outcome(
        ok=False,
        error=_told(error),
        transient=is_transient(error),
        poison=isinstance(error, Poison),
        delay_seconds=delay,
        throttled=delay is not None and isinstance(error, Throttled),
        slowed=delay is not None and is_throttled(error),
    )


def settlement(
    item: model.WorkItem, outcome: Outcome, settings: PoolSettings, seconds: float | None
) -> model.Settlement:
    """What the store is told about an attempt; `seconds` is how long it took, if that is known."""
    item_id, token = item.id, item.token
    if outcome.ok:
        done = (item_id, token, model.COMPLETE, outcome.result, None, 0.0, seconds)
        return model.Settlement.of(done)
    kind = model.POISON if outcome.poison else model.FAIL
    kind = model.TRANSIENT if outcome.transient else kind
    delay = outcome.delay_seconds
    if outcome.parked:
        kind = model.PARK
        delay = min(PARK_CAP_SECONDS, PARK_BASE_SECONDS * 2.0 ** min(item.given_back, 30))
    elif delay is None:
        delay = retry_rules.backoff(
            item.attempts + item.given_back,
            base=settings.retry_base_seconds,
            cap=settings.retry_cap_seconds,
            jitter=int.from_bytes(runtime.random_bytes(4)) / (1 << 32),
        )
    error = payload.error_text(outcome.error)
    return model.Settlement.of((item_id, token, kind, None, error, delay, seconds))


def _delay(error: BaseException) -> float | None:
    """What the job asked for, or who it asked; what is no number of seconds is no reason to fail
    otherwise."""
    try:
        asked = error.delay_seconds if isinstance(error, Transient) else _retry_after(error)
        return None if asked is None else payload.seconds(asked, "delay_seconds")
    except InvalidInput:
        return None


def _retry_after(error: BaseException) -> float | None:
    """Of an HTTP error that says when to come again."""
    if not is_throttled(error):
        return None
    headers: Any = getattr(getattr(error, "response", error), "headers", None)
    try:
        return float(headers.get("retry-after") or headers.get("Retry-After"))
    except (AttributeError, TypeError, ValueError):  # there is none, or it is a date
        return None


def is_throttled(error: BaseException) -> bool:
    return isinstance(error, Throttled) or _status(error) == 429


def is_transient(error: BaseException) -> bool:
    """Time-outs, broken connections, and HTTP errors that ask to come again later."""
    if isinstance(error, Transient | TimeoutError | ConnectionError):
        return True
    if not TRANSIENT_NAMES.isdisjoint(kind.__name__ for kind in type(error).__mro__):
        return True
    status = _status(error)
    return status == 429 or 500 <= status < 600


def _status(error: BaseException) -> int:
    """Of an HTTP error of whatever client; 0: it is none."""
    try:
        answer = getattr(error, "response", error)
        status = getattr(answer, "status_code", None) or getattr(answer, "status", None)
    except Exception:  # noqa: BLE001  (the error's own code raised it)
        return 0
    return status if isinstance(status, int) else 0


def _told(error: BaseException) -> str:
    """The error as a person wants to read it: the last line first, then where it came from."""
    kind, text = type(error).__name__, _text_of(error, str)
    if isinstance(error, JobError):
        return text or kind
    import traceback

    try:
        frames = "".join(traceback.format_exception(error)).strip()
    except Exception:  # noqa: BLE001  (the error's own code raised it)
        frames = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    return f"{kind}: {text}\n{frames}"


def _text_of(value: object, write: Callable[[object], str]) -> str:
    """`str` or `repr` of a value of the user's, whose own code may raise anything."""
    try:
        return write(value)
    except Stopped:
        raise
    except BaseException as error:  # noqa: BLE001  (an error about an error would hide both)
        return f"<{write.__name__}() of this {type(value).__name__} raised {type(error).__name__}>"


def _encoded(result: object) -> str:
    try:
        return payload.encode(result, "result")
    except InvalidInput as error:
        why = f"{error}; the job ran, and would run again to the same end"
        raise Poison(f"{why}\nThe result was: {_shown(result)}") from None


def _shown(result: object) -> str:
    """The start of the result's `repr`: all that is kept of a result that cannot be stored."""
    start = result
    if isinstance(result, str | bytes):  # its repr may be four times as long
        start = result[: RESULT_CHARS + 1]
    text = _text_of(start, repr)
    if len(text) <= RESULT_CHARS:
        return text
    return f"{text[:RESULT_CHARS]}... (cut after {RESULT_CHARS:,} characters)"


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        raise InvalidInput(f"the directory {directory}: {error.strerror}") from None
    if directory not in sys.path:
        sys.path.insert(0, directory)


def _command(argv: Sequence[str]) -> Processor:
    def call(job: Job) -> Any:
        import subprocess

        try:
            ran = subprocess.run(
                list(argv),
                input=payload.encode(job.item.data, "payload").encode(),
                capture_output=True,
                env={**os.environ, **_told_to_command(job)},
                check=False,
            )
        except OSError as error:
            raise Poison(f"{argv[0]} cannot be run: {error.strerror}") from None
        return _answer(argv[0], ran.returncode, ran.stdout, ran.stderr)

    return call


def _told_to_command(job: Job) -> dict[str, str]:
    item = job.item
    return {
        "SPRAT_POOL": item.pool,
        "SPRAT_ITEM": item.id,
        "SPRAT_ATTEMPT": str(job.attempt),
        "SPRAT_FENCE": str(job.fence),
    }


def _answer(program: str, code: int, out: bytes, err: bytes) -> Any:
    complaint = err.decode(errors="replace").strip()[-STDERR_CHARS:]
    if code == TRY_AGAIN:
        raise Transient(complaint or f"{program} asked to be tried again")
    if code != 0:
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        raise CommandFailed(
            f"{program} ended with {how}" + (f":\n{complaint}" if complaint else "")
        )
    if not out.strip():
        return None
    import json

    try:
        return json.loads(out)
    except ValueError as error:
        shown = out[:200].decode(errors="replace")
        raise CommandFailed(f"{program} printed no JSON ({error}): {shown}") from None


class CommandFailed(JobError):
    """The command of a pool did not succeed."""
