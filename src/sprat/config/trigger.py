"""A trigger: the outside cue that runs a pass. What may be said about one, and the sentence when
it may not. The names are those of `triggers:` in sprat.yml, or of a trigger_registry.yml."""

from __future__ import annotations

from sprat.config import schedule
from sprat.core import fields, jsontext, payload
from sprat.core.errors import InvalidInput
from sprat.core.model import EVENTS
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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

# Settings that these types of triggers need, and no other type has.
OF_TYPES = {
    "schedule": ((CRON,), "a schedule such as '*/5 * * * *'", "a schedule is"),
    "on": ((SUBPROCESS, IN_LOOP), f"an event: on: {' or '.join(EVENTS)}", "events are"),
    "secret_env": (
        (WEBHOOK,),
        "secret_env: the name of the variable with its secret",
        "secret_env is",
    ),
}

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
        fields.find(FIELDS, key, "a trigger has no")(value, key)
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
    for name, (types, needed, belongs) in OF_TYPES.items():
        is_given = bool(getattr(trigger, name))
        if kind in types and not is_given:
            raise InvalidInput(f"a {kind} trigger needs {needed}")
        if kind not in types and is_given:
            raise InvalidInput(f"{belongs} for {' and '.join(types)} triggers, not for {kind}")
    if trigger.machine is not None and trigger.command is not None:
        raise InvalidInput("a trigger has a machine or a command, not both")


def _name(value: object, name: str) -> None:
    try:
        payload.pool_name(value)
    except InvalidInput as error:
        raise InvalidInput(str(error).replace("pool name", "trigger's name")) from None


def _events(value: object, name: str) -> None:
    events = value if isinstance(value, list | tuple) else [value]
    fields.texts(EVENT, empty=f"names no event: use {' or '.join(EVENTS)}")(events, name)


def _variable(value: object, name: str) -> None:
    if not isinstance(value, str) or not value.isidentifier() or not value.isascii():
        raise InvalidInput(
            f"{name} must be the name of an environment variable, not a secret itself"
        )


EVENT = fields.choice(*EVENTS)
NAME = {"type": "string", "pattern": r"^[A-Za-z0-9._-]{1,128}$"}

FIELDS = {
    "name": fields.custom("letters, digits, `.`, `_` and `-`, not dots alone", _name, **NAME).means(
        "what commands and messages call it; required"
    ),
    "type": fields.choice(*TYPES).means("what fires it; required"),
    "schedule": fields.custom(
        "a cron schedule", lambda value, _: schedule.fields(value), type="string"
    ).means(
        "of a cron trigger: minute, hour, day of month, month, day of week, or `@hourly`, "
        "`@daily`, `@weekly`, `@monthly`, `@yearly`"
    ),
    "timezone": fields.custom(
        "a time zone", lambda value, _: schedule.zone(value), type="string"
    ).means("the zone that its schedule is meant in, such as `Europe/Berlin`"),
    "on": fields.custom(
        f"{EVENT.allowed}, or a list of them",
        _events,
        anyOf=[EVENT.schema, {"type": "array", "items": EVENT.schema, "minItems": 1}],
    ).means("of a subprocess or in_loop trigger: the events that fire it"),
    "pool": fields.custom("a pool's name", lambda value, _: payload.pool_name(value), **NAME).means(
        "the pool it is about; `pool_id` in its input means the same. Without one: that of the "
        "event, else every pool that has a handler or a command"
    ),
    "machine": fields.text().means(
        "`parallelization_checker` (a scaling pass, also when nothing is named), "
        "`stale_worker_reaper`, or the file of a machine; a file of that name in `directory` comes "
        "before the built-in"
    ),
    "command": fields.texts(
        fields.text(), "a list: a program and its arguments", empty="must name a program"
    ).means("instead of a machine, a program and its arguments, with the input as JSON on stdin"),
    "input": fields.mapping("(key: value)")
    .then(payload.encode)
    .means(
        "what the machine or command gets; a pass reads `max_workers`, the reaper "
        "`stale_threshold_seconds`"
    ),
    "secret_env": fields.custom(
        "the name of an environment variable",
        _variable,
        type="string",
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
    ).means("of a webhook: the name of the variable that holds its secret"),
    "timeout_seconds": fields.more_than_zero(fields.seconds(MAX_TIMEOUT_SECONDS)).means(
        "a machine or command that takes longer is stopped, with all it started"
    ),
    "directory": fields.text().means("where the command runs and the machine is found"),
}
