"""Where workers run: the launchers by name, and the options that each of them takes.

A launcher's options are a module here with a record `Options` (the defaults) and CHECKS for each of
them; it may have `check(options)`, which looks at all of them together, and FILES. What starts
workers with them is in launchers/. A module is imported when a pool asks for it.
"""

from __future__ import annotations

from sprat.core import extensions
from sprat.core.did_you_mean import did_you_mean
from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def options(launcher: str, given: Mapping[str, Any]) -> Any:
    """The options of a launcher as its record, each checked, or InvalidInput."""
    home = _home(launcher)
    for name, value in given.items():
        check(launcher, name, value)
    try:
        made = home.Options(**given)
        if hasattr(home, "check"):
            home.check(made)
    except InvalidInput as error:
        raise InvalidInput(f"the launcher {launcher}: {error}") from None
    return made


def check(launcher: str, name: str, value: object) -> None:
    """Refuse an option that the launcher does not have, or a value that it cannot use."""
    home = _home(launcher)
    try:
        if name not in home.CHECKS:
            known = did_you_mean(name, home.CHECKS) if home.CHECKS else ": it has none"
            raise InvalidInput(f"it has no option {name!r}{known}")
        home.CHECKS[name](value, name)
    except InvalidInput as error:
        raise InvalidInput(f"the launcher {launcher}: {error}") from None


def files(launcher: str) -> tuple[str, ...]:
    """The options that may name a YAML file in sprat.yml: what is in it is kept, not its name."""
    found: tuple[str, ...] = getattr(_home(launcher), "FILES", ())
    return found


def _home(launcher: str) -> Any:
    if launcher not in extensions.names("launcher"):
        known = " or ".join(extensions.names("launcher"))
        raise InvalidInput(f"unknown launcher {launcher!r}: use {known}")
    return __import__(f"sprat.launchers.{launcher}.options", fromlist=["CHECKS"])
