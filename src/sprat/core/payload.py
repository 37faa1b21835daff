"""Checks on what callers send: JSON values, names and numbers, each refused in one sentence."""

from __future__ import annotations

from sprat.core import jsontext, model
from sprat.core.errors import InvalidInput
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

MAX_BYTES = 1 << 20  # of one payload, result or checkpoint as JSON text
MAX_DEPTH = 64  # levels of lists and objects in it; every reader of the store recurses into them
MAX_IDS = 1000  # that one request to a server may name; the HTTP store sends more in several
MAX_ERROR_CHARS = 20_000  # an error text is cut here, never refused
MAX_NAME_CHARS = 128
MAX_METADATA_BYTES = 64 * 1024  # of one worker: every look at its pool reads it
MAX_CAPABILITIES = 100  # of one worker
MAX_DELAY_SECONDS = 10 * 365 * 86400.0
KEPT_SETTINGS = 100  # texts of settings that need not be read again

NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_31_BITS = (1 << 31) - 1
_SCALARS = (str, int, float, bool, type(None))
_settings: dict[str, model.PoolSettings] = {}  # as read from their text


def encode(value: object, what: str) -> str:
    """The value as JSON text. Values that are not plain JSON are converted (see plain_json.py).

    Raises InvalidInput when the value, or a value inside it, has no JSON form, is nested more than
    MAX_DEPTH levels, or when the text is longer than MAX_BYTES. `what` is what the error message
    calls the value.
    """
    try:
        check_plain(value, MAX_DEPTH)
        text = jsontext.dumps(value)
        size = len(text) if text.isascii() else len(text.encode())
    except (TypeError, ValueError, RecursionError):
        from sprat.core import plain_json

        # An element of an array takes two bytes or more: itself, and a comma or a bracket.
        text = plain_json.dumps(value, what, max_elements=MAX_BYTES // 2, max_depth=MAX_DEPTH)
        size = len(text.encode())
    if size > MAX_BYTES:
        raise InvalidInput(
            f"the {what} is {size:,} bytes of JSON, more than {MAX_BYTES:,}: "
            f"keep it elsewhere and send its address"
        )
    return text


def metadata(values: Mapping[str, Any]) -> str:
    """The metadata of a worker as JSON text."""
    return _small_enough(encode(dict(values), "metadata"))


def merged_metadata(stored: str, sent: str) -> str:
    """What a heartbeat makes of the metadata of a worker, both as JSON text."""
    return _small_enough(jsontext.dumps({**jsontext.loads(stored), **jsontext.loads(sent)}))


def _small_enough(text: str) -> str:
    if len(text.encode()) > MAX_METADATA_BYTES:
        raise too_much_metadata()
    return text


def too_much_metadata() -> InvalidInput:
    return InvalidInput(
        f"the metadata of a worker is at most {MAX_METADATA_BYTES:,} bytes of JSON, all heartbeats "
        f"together: send less, or register the worker again to start with none"
    )


def capabilities(values: Sequence[object]) -> tuple[str, ...]:
    """What a worker can do: up to MAX_CAPABILITIES labels."""
    if len(values) > MAX_CAPABILITIES:
        raise InvalidInput(
            f"a worker has at most {MAX_CAPABILITIES} capabilities, not {len(values):,}"
        )
    return tuple(label(value, "capability") or "" for value in values)


def check_plain(value: Any, levels: int) -> None:
    """Raise TypeError for what json.dumps would change without a word: subclasses, and keys that
    are not texts; RecursionError for more than these levels."""
    if not levels:
        raise RecursionError
    kind = type(value)
    if kind is dict:
        for key, inner in value.items():
            if type(key) is not str:
                raise TypeError
            if type(inner) not in _SCALARS:
                check_plain(inner, levels - 1)
    elif kind is list or kind is tuple:
        for inner in value:
            if type(inner) not in _SCALARS:
                check_plain(inner, levels - 1)
    elif kind not in _SCALARS:
        raise TypeError


def each(many: Iterable[Any]) -> Iterable[Any]:
    """What is to be pushed, one after the other. A text is one payload, not its letters."""
    if isinstance(many, str | bytes) or not hasattr(many, "__iter__"):
        raise InvalidInput(f"push_many takes a list of payloads, not {type(many).__name__}")
    return many


def pool_name(name: object) -> str:
    return _name(name, "pool name")


def task_name(name: object) -> str | None:
    """The name of a task (`module:function` or another printable text), or None."""
    return label(name, "task name")


def label(value: object, what: str) -> str | None:
    """A tenant, group or idempotency key: any printable text, or None."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInput(f"the {what} must be a string, not {type(value).__name__}")
    if not value or len(value) > MAX_NAME_CHARS or not value.isprintable():
        raise InvalidInput(f"the {what} must be 1 to {MAX_NAME_CHARS} printable characters")
    return value


def direction(value: object) -> str:
    """Of a scaling decision."""
    if value not in model.DIRECTIONS:
        raise InvalidInput(f"unknown direction {value!r}: one of {', '.join(model.DIRECTIONS)}")
    return str(value)


def worker_id(value: object) -> str:
    if value is None:
        raise InvalidInput("the worker id is missing")
    return label(value, "worker id") or ""


def _name(name: object, what: str) -> str:
    if not isinstance(name, str):
        raise InvalidInput(f"the {what} must be a string, not {type(name).__name__}")
    if not name.strip(".") or len(name) > MAX_NAME_CHARS or not NAME_CHARS.issuperset(name):
        raise InvalidInput(
            f"the {what} {name[:60]!r} must be 1 to {MAX_NAME_CHARS} of: letters, digits, . _ -, "
            f"not of dots alone"
        )
    return name


def whole(value: object, what: str, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise InvalidInput(f"{what} must be a whole number from {low} to {high}, not {value!r}")
    return value


def seconds(value: object, what: str, high: float = MAX_DELAY_SECONDS) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= high:
        raise InvalidInput(f"{what} must be seconds from 0 to {high:.0f}, not {value!r}")
    return float(value)


def new_id() -> str:
    """A fresh id: random, with the time in front so that neighbours in time are neighbours in
    the index. Only its uniqueness matters."""
    return f"{int(runtime.time() * 1000):012x}{runtime.random_bytes(8).hex()}"


def new_ids(n: int) -> list[str]:
    """Fresh ids that count up from a random one: 63 bits are drawn once a call."""
    drawn = int.from_bytes(runtime.random_bytes(8)) >> 1  # one bit less: counting does not overflow
    prefix = f"{int(runtime.time() * 1000):012x}{drawn >> 31:08x}"
    first = drawn & _31_BITS
    return [prefix + f"{number:08x}" for number in range(first, first + n)]


def attempts(max_attempts: object, max_retries: object) -> int:
    """How often a job may be started. `max_retries` is the older name, and that of the record."""
    if max_attempts is None:
        name, value = "max_retries", model.MAX_RETRIES if max_retries is None else max_retries
    elif max_retries in (None, max_attempts):
        name, value = "max_attempts", max_attempts
    else:
        raise InvalidInput(
            f"max_attempts is {max_attempts!r} and max_retries is {max_retries!r}: "
            f"both mean the attempts in all, give one"
        )
    return whole(value, name, 1, 1000)


def new_item(
    data: object,
    *,
    max_attempts: int | None = None,
    max_retries: int | None = None,
    priority: int = 0,
    delay: float = 0.0,
    tenant: str | None = None,
    group: str | None = None,
    key: str | None = None,
    backlog: bool = False,
    task: str | None = None,
) -> model.NewItem:
    """Check one item for pushing."""
    return model.NewItem.of(
        (
            new_id(),
            encode(data, "payload"),
            attempts(max_attempts, max_retries),
            whole(priority, "priority", -(1 << 31), (1 << 31) - 1),
            seconds(delay, "delay"),
            label(tenant, "tenant"),
            label(group, "group"),
            label(key, "key"),
            backlog is True,
            task_name(task),
        )
    )


def many_like(item: model.NewItem, data: Iterable[object]) -> list[model.NewItem]:
    """Items with the options of this one and payloads of their own."""
    texts = [encode(value, "payload") for value in data]
    of, options = model.NewItem.of, item[2:]
    return [of(pair + options) for pair in zip(new_ids(len(texts)), texts, strict=True)]


def settings_from(stored: str) -> model.PoolSettings:
    """Settings as stored; names that only a newer sprat knows are left alone. They are asked for
    at every push and seldom change: the same text is read once."""
    settings = _settings.get(stored)
    if settings is None:
        defaults = model.PoolSettings().as_dict()
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in jsontext.loads(stored).items()
            if name in defaults
        }
        settings = model.PoolSettings(**values)
        if len(_settings) >= KEPT_SETTINGS:
            _settings.clear()
        _settings[stored] = settings
    return settings


def error_text(error: object) -> str | None:
    """An error as stored: text that any store can hold, cut to a bounded length."""
    if error is None:
        return None
    text = str(error).encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    if len(text) <= MAX_ERROR_CHARS:
        return text
    return text[:MAX_ERROR_CHARS] + f"... (cut, {len(text):,} characters)"
