"""A pool's settings: every name, what it may be, and the sentence when it is not."""

from __future__ import annotations

from sprat.core import extensions, payload
from sprat.core.did_you_mean import did_you_mean
from sprat.core.errors import InvalidInput
from sprat.core.model import EVENTS, PoolSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ISOLATIONS = ("process", "none")
MAX_WORKERS = 100_000
OF_JOBS = ("max_attempts", "max_retries")  # given with a push, not in a pool's settings


def changed(now: PoolSettings, changes: Mapping[str, object]) -> PoolSettings:
    """The settings after these changes, each checked, and then all of them together."""
    for name, value in changes.items():
        if name not in CHECKS:
            raise InvalidInput(f"a pool has no setting {name!r}{advice(name)}")
        CHECKS[name](value, name)
    after = now.replace(**changes)
    if after.min_workers > after.max_workers:
        raise InvalidInput(
            f"min_workers {after.min_workers} is more than max_workers {after.max_workers}"
        )
    if (after.handler, after.command, after.machine).count(None) < 2:
        raise InvalidInput("a pool has a handler or a command or a machine, not two of them")
    if changes.keys() & {"policy", "policy_options", "min_workers", "max_workers"}:
        extensions.load("check", "policies").check(after)
    if changes.keys() & {"launcher", "launcher_options"}:
        extensions.load("check", "launchers").options(after.launcher, after.launcher_options)
    return after


def has_processor(settings: PoolSettings) -> bool:
    """Whether the pool says what its workers run: tasks always come with a handler."""
    return (settings.handler, settings.command, settings.machine) != (None, None, None)


def require_processor(settings: PoolSettings, pool: str) -> None:
    """Workers that are launched for a pool without a handler can only fail: InvalidInput."""
    if not has_processor(settings):
        raise InvalidInput(f"pool {pool} has no handler and no command: `sprat apply` gives it one")


def advice(name: str) -> str:
    """The end of a sentence about a setting that a pool does not have: what may have been meant."""
    if name in OF_JOBS:
        return ": each job has its own: `sprat push --max-attempts`, @sprat.task(max_attempts=...)"
    return did_you_mean(name, CHECKS)


def _optional(check: Callable[[object, str], object]) -> Callable[[object, str], object]:
    return lambda value, name: None if value is None else check(value, name)


def _whole(low: int, high: int) -> Callable[[object, str], object]:
    return lambda value, name: payload.whole(value, name, low, high)


def _seconds(value: object, name: str) -> object:
    return payload.seconds(value, name)


def _some_seconds(value: object, name: str) -> None:
    if not payload.seconds(value, name):
        raise InvalidInput(f"{name} must be more than 0 seconds")


def _flag(value: object, name: str) -> None:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be true or false, not {value!r}")


def _one_of(*words: str) -> Callable[[object, str], object]:
    def check(value: object, name: str) -> None:
        if value not in words:
            raise InvalidInput(f"{name} must be {' or '.join(words)}, not {value!r}")

    return check


def _text(value: object, name: str) -> None:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} must be a text, not {value!r}")


def _texts(value: object, name: str) -> None:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise InvalidInput(f"{name} must be a list of texts, not {value!r}")
    for part in value:
        _text(part, name)


def _variables(value: object, name: str) -> None:
    _texts(value, name)
    for part in value:  # type: ignore[attr-defined]  # a list, as was just checked
        variable, sign, _ = part.partition("=")
        if sign:  # the value may be a secret
            raise InvalidInput(f"{name} takes names without values: {variable}, not {variable}=...")


def _handler(value: object, name: str) -> None:
    _text(value, name)
    module, colon, function = str(value).partition(":")
    parts = (*module.split("."), *function.split("."))
    if not colon or not all(part.isidentifier() for part in parts):
        raise InvalidInput(f"{name} must be module:function, not {value!r}")


def _command(value: object, name: str) -> None:
    _texts(value, name)
    if not value:
        raise InvalidInput(f"{name} must name a program")


def _files(value: object, name: str) -> None:
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} must be a mapping from name to file, not {value!r}")
    for key, path in value.items():
        _text(key, f"a name in {name}")
        _text(path, f"{name}.{key}")


def _tasks(value: object, name: str) -> None:
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} must be a mapping from task to its handler, not {value!r}")
    for task, about in value.items():
        payload.task_name(task)
        if not isinstance(about, dict):
            raise InvalidInput(f"{name}.{task} must be a mapping with handler, file and host")
        _handler(about.get("handler"), f"{name}.{task}.handler")
        for key, text in about.items():
            _text(text, f"{name}.{task}.{key}")


def _policy(value: object, name: str) -> None:
    extensions.load("check", "policies").find(value)


def _launcher(value: object, name: str) -> None:
    _one_of(*extensions.names("launcher"))(value, name)


def _options(value: object, name: str) -> None:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(f"{name} must be a mapping from option to value, not {value!r}")


def _tenant_limits(value: object, name: str) -> None:
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} must be a mapping from tenant to number")
    for tenant, limit in value.items():
        payload.label(tenant, "tenant")
        payload.whole(limit, f"the limit of tenant {tenant!r}", 0, 1_000_000)


def _events(value: object, name: str) -> None:
    if not isinstance(value, dict) or not set(value) <= set(EVENTS):
        raise InvalidInput(f"{name} must be a mapping from {' or '.join(EVENTS)} to triggers")
    for names in value.values():
        _texts(names, name)


CHECKS: dict[str, Callable[[object, str], object]] = {
    "handler": _optional(_handler),
    "command": _optional(_command),
    "machine": _optional(_text),
    "machines": _files,
    "tasks": _tasks,
    "directory": _optional(_text),
    "environment": _variables,
    "isolation": _one_of(*ISOLATIONS),
    "claim_ahead": _whole(1, 1000),
    "timeout_seconds": _optional(_some_seconds),
    "retry_base_seconds": _seconds,
    "retry_cap_seconds": _seconds,
    "max_transient": _optional(_whole(0, 1_000_000)),
    "on_lost_contact": _one_of("continue", "stop"),
    "heartbeat_seconds": _some_seconds,
    "launcher": _launcher,
    "launcher_options": _options,
    "policy": _policy,
    "policy_options": _options,
    "min_workers": _whole(0, MAX_WORKERS),
    "max_workers": _whole(0, MAX_WORKERS),
    "max_jobs": _whole(0, 1_000_000_000),
    "idle_seconds": _seconds,
    "start_deadline_seconds": _some_seconds,
    "start_on_push": _flag,
    "tenant_limit": _optional(_whole(0, 1_000_000)),
    "tenant_limits": _tenant_limits,
    "keep_done_seconds": _optional(_seconds),
    "keep_poisoned_seconds": _optional(_seconds),
    "keep_cancelled_seconds": _optional(_seconds),
    "events": _events,
}
