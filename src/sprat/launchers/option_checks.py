"""Where workers run: the launchers by name, and the options that each of them takes.

A launcher's options are a module here with a record `Options` (the defaults) and FIELDS for each of
them; it may have `check(options)`, which looks at all of them together, and FILES. What starts
workers with them is in launchers/. A module is imported when a pool asks for it.
"""

from __future__ import annotations

from sprat.core import extensions, fields
from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def options(launcher: str, given: Mapping[str, Any]) -> Any:
    """The options of a launcher as its record, each checked, or InvalidInput."""
    home = _home(launcher)
    for name, value in given.items():
        option(launcher, name, value)
    try:
        made = home.Options(**given)
        if hasattr(home, "check"):
            home.check(made)
    except InvalidInput as error:
        raise InvalidInput(f"the launcher {launcher}: {error}") from None
    return made


def option(launcher: str, name: str, value: object, *, in_file: bool = False) -> Any:
    """The value of an option, or InvalidInput; `in_file`: of a YAML file, where 5m is a time."""
    table = _home(launcher).FIELDS
    return fields.option(f"the launcher {launcher}", table, name, value, in_file=in_file)


def files(launcher: str) -> tuple[str, ...]:
    """The options that may name a YAML file in sprat.yml: what is in it is kept, not its name."""
    found: tuple[str, ...] = getattr(_home(launcher), "FILES", ())
    return found


def _home(launcher: str) -> Any:
    if launcher not in extensions.names("launcher"):
        known = " or ".join(extensions.names("launcher"))
        raise InvalidInput(f"unknown launcher {launcher!r}: use {known}")
    return __import__(f"sprat.launchers.{launcher}.options", fromlist=["FIELDS"])
