"""Workers as containers: what a pool may say about them."""

from __future__ import annotations

import re

from sprat.core import payload
from sprat.core.errors import InvalidInput
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MISSING = "missing"
ALWAYS = "always"
NEVER = "never"
PULLS = (MISSING, ALWAYS, NEVER)
SCHEMES = ("unix://", "tcp://", "http://", "https://", "ssh://", "npipe://")
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
LEAST_MEMORY = 6 << 20  # an engine refuses less
MOST_STOP_SECONDS = 86400.0

SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([bkmg]?)b?", re.IGNORECASE)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
VOLUME = re.compile(r"([^:]+):(/[^:]*)(?::(ro|rw|z|Z)(?:,(ro|rw|z|Z))*)?")


class Options(Record):
    image: str = ""  # has sprat and the user's code in it
    directory: str = "."  # inside the container: where the handler is imported from
    command: Sequence[str] = ("sprat",)  # the program in the image that `work POOL ...` is said to
    pull: str = MISSING  # when the image is fetched from its registry
    host: str | None = None  # the engine's address; None: DOCKER_HOST, or this machine's
    network: str | None = None  # None: the engine's default
    memory: str | int | None = None  # the most that a worker may use: 512m, 2g, or bytes
    cpus: float | None = None
    volumes: Sequence[str] = ()  # SOURCE:TARGET or SOURCE:TARGET:ro
    user: str | None = None  # None: the image's
    read_only: bool = False  # nothing but /tmp and volumes can be written
    init: bool = True  # a tiny first process, which hands signals on and waits for orphans
    stop_seconds: float = 10.0  # between SIGTERM and SIGKILL
    labels: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}  # not for secrets: the store keeps it


def size(value: str | int) -> int:
    """Bytes: `512m` is 536870912."""
    found = SIZE.fullmatch(str(value))
    if found is None:
        raise ValueError(value)
    return int(float(found[1]) * UNITS[found[2].lower()])


def _text(value: object, name: str) -> None:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InvalidInput(f"{name} must be a text, not {value!r}")


def _word(value: object, name: str) -> None:
    _text(value, name)
    if " " in str(value):
        raise InvalidInput(f"{name} must be one word, not {value!r}")


def _texts(value: object, name: str) -> None:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise InvalidInput(f"{name} must be a list of texts, not {value!r}")
    for part in value:
        _text(part, name)


def _command(value: object, name: str) -> None:
    _texts(value, name)
    if not value:
        raise InvalidInput(f"{name} must name a program of the image")


def _pull(value: object, name: str) -> None:
    if value not in PULLS:
        raise InvalidInput(f"{name} must be {' or '.join(PULLS)}, not {value!r}")


def _host(value: object, name: str) -> None:
    if not isinstance(value, str) or not value.startswith(SCHEMES):
        raise InvalidInput(
            f"{name} must be an address such as unix:///run/docker.sock or tcp://host:2376, "
            f"not {value!r}"
        )


def _memory(value: object, name: str) -> None:
    is_size = type(value) is int or (isinstance(value, str) and SIZE.fullmatch(value))
    if not is_size:
        raise InvalidInput(f"{name} must be a size such as 512m or 2g, not {value!r}")
    if size(value) < LEAST_MEMORY:  # type: ignore[arg-type]  # it is one of these two
        raise InvalidInput(f"{name} must be at least 6m, not {value!r}")


def _cpus(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.01 <= value <= 4096:
        raise InvalidInput(f"{name} must be a number of processors from 0.01, not {value!r}")


def _volumes(value: object, name: str) -> None:
    _texts(value, name)
    targets = []
    for one in value:  # type: ignore[attr-defined]  # it is a list
        found = VOLUME.fullmatch(one)
        if found is None:
            raise InvalidInput(
                f"{name}: {one!r} must be SOURCE:/TARGET or SOURCE:/TARGET:ro, "
                f"with a directory or the name of a volume as its source"
            )
        if found[1].startswith((".", "~")):
            raise InvalidInput(f"{name}: {one!r} must begin with / or with a volume's name")
        targets.append(found[2])
    if len(targets) != len(set(targets)):
        raise InvalidInput(f"{name}: two of them have the same target")


def _flag(value: object, name: str) -> None:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be true or false, not {value!r}")


def _stop_seconds(value: object, name: str) -> None:
    payload.seconds(value, name, MOST_STOP_SECONDS)


def _labels(value: object, name: str) -> None:
    for label, text in _mapping(value, name):
        _word(label, f"a label in {name}")
        if label.startswith("sprat."):
            raise InvalidInput(f"{name}: {label} is ours: choose another label")
        if not isinstance(text, str):
            raise InvalidInput(f"{name}.{label} must be a text, not {text!r}: quote it")


def _environment(value: object, name: str) -> None:
    for variable, text in _mapping(value, name):
        if not VARIABLE.fullmatch(variable):
            raise InvalidInput(f"{name}: {variable!r} is no name of a variable")
        if variable.startswith("SPRAT_"):
            raise InvalidInput(f"{name}: {variable} is ours: choose another variable")
        if not isinstance(text, str) or "\0" in text:
            raise InvalidInput(f"{name}.{variable} must be a text, not {text!r}: quote it")


def _mapping(value: object, name: str) -> list[tuple[str, object]]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(f"{name} must be a mapping from name to text, not {value!r}")
    return list(value.items())


CHECKS: dict[str, Callable[[object, str], object]] = {
    "image": _word,
    "directory": _text,
    "command": _command,
    "pull": _pull,
    "host": _host,
    "network": _word,
    "memory": _memory,
    "cpus": _cpus,
    "volumes": _volumes,
    "user": _word,
    "read_only": _flag,
    "init": _flag,
    "stop_seconds": _stop_seconds,
    "labels": _labels,
    "environment": _environment,
}


def check(options: Options) -> None:
    if not options.image:
        raise InvalidInput("it needs an image: set launcher_options.image")
