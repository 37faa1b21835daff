"""A trigger: the outside cue that runs a pass. What may be said about one, and the sentence when
it may not. The names are those of `triggers:` in sprat.yml, or of a trigger_registry.yml."""

from __future__ import annotations

from sprat.config import schedule
from sprat.core import jsontext, payload
from sprat.core.errors import InvalidInput
from sprat.core.model import EVENTS
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

CRON = "cron"
WEBHOOK = "webhook"
SUBPROCESS = "subprocess"
IN_LOOP = "in_loop"
LAMBDA = "lambda"
TYPES = (CRON, WEBHOOK, SUBPROCESS, IN_LOOP, LAMBDA)

# Machines that are functions of ours: any other name is a file.
CHECKER = "parallelization_checker"
REAPER = "stale_worker_reaper"

MAX_TIMEOUT_SECONDS = 86400.0


class Trigger(Record):
    """What fires it (`type`, with `schedule` or `on`), and what happens then: a scaling pass over
    its pool, a machine, or a command."""

    name: str
    type: str
    schedule: str | None = None
    timezone: str = "UTC"
    on: Sequence[str] = ()
    pool: str | None = None  # of no pool: whichever the event happened in; else all
    machine: str | None = None
    command: Sequence[str] | None = None
    input: Mapping[str, Any] = {}
    secret_env: str | None = None  # the variable that holds a webhook's secret, never the secret
    timeout_seconds: float = 300.0  # then what it started is stopped
    directory: str | None = None  # where the machine is found and the command runs

    @property
    def is_pass(self) -> bool:
        """Whether firing it is a scaling pass."""
        return self.command is None and self.machine in (None, CHECKER)


def checked(given: Mapping[str, object]) -> Trigger:
    """A trigger from the keys of a file, or InvalidInput. `pool_id` in its input names its pool."""
    for key, value in given.items():
        if key not in CHECKS:
            raise InvalidInput(f"a trigger has no {key!r}: use {', '.join(CHECKS)}")
        CHECKS[key](value, key)
    for key in ("name", "type"):
        if key not in given:
            raise InvalidInput(f"a trigger needs a {key}")
    values: dict[str, Any] = dict(given)
    events = values.get("on", ())
    values["on"] = (events,) if isinstance(events, str) else tuple(events)
    if "input" in values:  # as it comes back from the store
        values["input"] = jsontext.loads(payload.encode(values["input"], "input"))
    values["pool"] = _pool_of(values)
    made = Trigger(**values)
    _check_together(made)
    return made


def _pool_of(values: Mapping[str, Any]) -> str | None:
    pool: str | None = values.get("pool")
    named = values.get("input", {}).get("pool_id")
    if named is None:
        return pool
    payload.pool_name(named)
    if pool not in (None, named):
        raise InvalidInput(f"pool is {pool} and input.pool_id is {named}: leave one of them out")
    return str(named)


def _check_together(trigger: Trigger) -> None:
    kind = trigger.type
    if kind == CRON and trigger.schedule is None:
        raise InvalidInput("a cron trigger needs a schedule such as '*/5 * * * *'")
    if kind != CRON and trigger.schedule is not None:
        raise InvalidInput(f"a schedule is for cron triggers, not for {kind}")
    if kind in (SUBPROCESS, IN_LOOP) and not trigger.on:
        raise InvalidInput(f"a {kind} trigger needs an event: on: {' or '.join(EVENTS)}")
    if kind not in (SUBPROCESS, IN_LOOP) and trigger.on:
        raise InvalidInput(f"events are for subprocess and in_loop triggers, not for {kind}")
    if kind == WEBHOOK and trigger.secret_env is None:
        raise InvalidInput(
            "a webhook trigger needs secret_env: the name of the variable with its secret"
        )
    if kind != WEBHOOK and trigger.secret_env is not None:
        raise InvalidInput(f"secret_env is for webhook triggers, not for {kind}")
    if trigger.machine is not None and trigger.command is not None:
        raise InvalidInput("a trigger has a machine or a command, not both")


def _one_of(*words: str) -> Callable[[object, str], object]:
    def check(value: object, name: str) -> None:
        if not isinstance(value, str) or value not in words:
            raise InvalidInput(f"{name} must be {' or '.join(words)}, not {value!r}")

    return check


def _text(value: object, name: str) -> None:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidInput(f"{name} must be a text, not {value!r}")


def _name(value: object, name: str) -> None:
    try:
        payload.pool_name(value)
    except InvalidInput as error:
        raise InvalidInput(str(error).replace("pool name", "trigger's name")) from None


def _events(value: object, name: str) -> None:
    if isinstance(value, list | tuple):
        if not value:
            raise InvalidInput(f"{name} names no event: use {' or '.join(EVENTS)}")
        for one in value:
            _one_of(*EVENTS)(one, name)
    else:
        _one_of(*EVENTS)(value, name)


def _command(value: object, name: str) -> None:
    if isinstance(value, str) or not isinstance(value, list | tuple) or not value:
        raise InvalidInput(f"{name} must be a list: a program and its arguments, not {value!r}")
    for part in value:
        _text(part, name)


def _input(value: object, name: str) -> None:
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} must be a mapping (key: value), not {value!r}")
    payload.encode(value, name)


def _variable(value: object, name: str) -> None:
    if not isinstance(value, str) or not value.isidentifier() or not value.isascii():
        raise InvalidInput(
            f"{name} must be the name of an environment variable, not a secret itself"
        )


def _timeout(value: object, name: str) -> None:
    if not 0 < payload.seconds(value, name) <= MAX_TIMEOUT_SECONDS:
        raise InvalidInput(f"{name} must be more than 0 and at most a day")


CHECKS: dict[str, Callable[[object, str], object]] = {
    "name": _name,
    "type": _one_of(*TYPES),
    "schedule": lambda value, name: schedule.fields(value),
    "timezone": lambda value, name: schedule.zone(value),
    "on": _events,
    "pool": lambda value, name: payload.pool_name(value),
    "machine": _text,
    "command": _command,
    "input": _input,
    "secret_env": _variable,
    "timeout_seconds": _timeout,
    "directory": _text,
}
