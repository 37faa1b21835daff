"""Checks on the options of a policy, each refused in one sentence."""

from __future__ import annotations

import math

from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[object, str], None]

MAX_WORKERS = 100_000
MAX_SECONDS = 10 * 365 * 86400.0


def whole(high: int = MAX_WORKERS) -> Check:
    def check(value: object, name: str) -> None:
        if type(value) is not int or not 0 <= value <= high:
            raise InvalidInput(f"{name} must be a whole number from 0 to {high}, not {value!r}")

    return check


def number(high: float) -> Check:
    def check(value: object, name: str) -> None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= float(value) <= high:  # type: ignore[arg-type]  # checked
            raise InvalidInput(f"{name} must be a number from 0 to {high:g}, not {value!r}")

    return check


def optional(check: Check) -> Check:
    return lambda value, name: None if value is None else check(value, name)


seconds = number(MAX_SECONDS)


def ceil(value: float) -> int:
    """Rounded up to so many workers, but not for the last digits of a division, which are noise."""
    return math.ceil(min(value, MAX_WORKERS) * (1.0 - 1e-9))
