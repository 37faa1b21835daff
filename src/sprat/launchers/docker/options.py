"""Workers as containers: what a pool may say about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sprat.core import fields
from sprat.core.errors import InvalidInput
from sprat.core.record import Record

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
    """The defaults; FIELDS has what each of them means."""

    image: str = ""
    directory: str = "."
    command: Sequence[str] = ("sprat",)
    pull: str = MISSING
    host: str | None = None
    network: str | None = None
    memory: str | int | None = None
    cpus: float | None = None
    volumes: Sequence[str] = ()
    user: str | None = None
    read_only: bool = False
    init: bool = True
    stop_seconds: float = 10.0
    labels: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}


def size(value: str | int) -> int:
    """Bytes: `512m` is 536870912."""
    found = SIZE.fullmatch(str(value))
    if found is None:
        raise ValueError(value)
    return int(float(found[1]) * UNITS[found[2].lower()])


def _is_size(value: object) -> bool:
    return type(value) in (int, str) and SIZE.fullmatch(str(value)) is not None


def _volumes(values: Sequence[str], name: str) -> None:
    targets = []
    for volume in values:
        parts = VOLUME.fullmatch(volume)
        if parts is None:
            raise InvalidInput(
                f"{name}: {volume!r} must be SOURCE:/TARGET or SOURCE:/TARGET:ro, "
                f"with a directory or the name of a volume as its source"
            )
        if parts[1].startswith((".", "~")):
            raise InvalidInput(f"{name}: {volume!r} must begin with / or with a volume's name")
        targets.append(parts[2])
    if len(targets) != len(set(targets)):
        raise InvalidInput(f"{name}: two of them have the same target")


def _label(label: str, value: object, name: str) -> None:
    WORD(label, f"a label in {name}")
    if label.startswith("sprat."):
        raise InvalidInput(f"{name}: {label} is ours: choose another label")
    if not isinstance(value, str):
        raise InvalidInput(f"{name}.{label} must be a text, not {value!r}: quote it")


def _variable(variable: str, value: object, name: str) -> None:
    if not VARIABLE.fullmatch(variable):
        raise InvalidInput(f"{name}: {variable!r} is no name of a variable")
    if variable.startswith("SPRAT_"):
        raise InvalidInput(f"{name}: {variable} is ours: choose another variable")
    if not isinstance(value, str) or "\0" in value:
        raise InvalidInput(f"{name}.{variable} must be a text, not {value!r}: quote it")


WORD = fields.line().also("one word", lambda value: " " not in value, pattern="^[^ ]*$")
TEXT = {"type": "string"}

FIELDS = {
    "image": WORD.means("which image; it must be given"),
    "directory": fields.line().means(
        "inside the container: where the handler is imported and the command runs"
    ),
    "command": fields.texts(fields.line(), empty="must name a program of the image").means(
        "the program in the image that `work POOL ...` is passed to"
    ),
    "pull": fields.choice(*PULLS).means(
        "when the image is fetched: if it is missing, at every launch, or never"
    ),
    "host": fields.kind(
        "an address such as unix:///run/docker.sock or tcp://host:2376",
        lambda value: isinstance(value, str) and value.startswith(SCHEMES),
        **TEXT,
        pattern=f"^({'|'.join(SCHEMES)})",
    ).means("the engine's address; default: `DOCKER_HOST`, or this machine's engine"),
    "network": WORD.means("as `docker run --network`; `host` for a store on this machine"),
    "memory": fields.kind("a size such as 512m or 2g", _is_size, type=["string", "integer"])
    .also("at least 6m", lambda value: size(value) >= LEAST_MEMORY)
    .means("the most that a worker may use"),
    "cpus": fields.number(0.01, 4096, "a number of processors from 0.01").means(
        "how many processors it may use"
    ),
    "volumes": fields.texts(fields.line())
    .then(_volumes)
    .means("a list of `SOURCE:/TARGET` or `SOURCE:/TARGET:ro`"),
    "user": WORD.means("the user it runs as; default: that of the image"),
    "read_only": fields.flag().means("only `/tmp` and volumes can be written"),
    "init": fields.flag().means("a tiny first process forwards signals and waits for orphans"),
    "stop_seconds": fields.seconds(MOST_STOP_SECONDS).means(
        "between SIGTERM and SIGKILL, for `docker stop` and for containers that are stuck"
    ),
    "labels": fields.mapping("from name to text", _label, values=TEXT).means(
        "more labels; `sprat.*` are reserved"
    ),
    "environment": fields.mapping("from name to text", _variable, values=TEXT).means(
        "variables and their values; the store keeps them, so no secrets"
    ),
}


def check(options: Options) -> None:
    if not options.image:
        raise InvalidInput("it needs an image: set launcher_options.image")
