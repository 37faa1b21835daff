"""Numbers from environment variables: an unset or empty one is the default, nonsense is refused."""

from __future__ import annotations

import math
import os

from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TENANT_LIMIT = "PER_TENANT_MAX_CONCURRENCY"
MAX_TENANT_LIMIT = 1_000_000


def tenant_limit() -> int | None:
    """The `tenant_limit` of pools that have none; None where the variable is not set."""
    if not os.environ.get(TENANT_LIMIT, "").strip():
        return None
    return whole(os.environ, TENANT_LIMIT, 0, MAX_TENANT_LIMIT)


def given(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    """The environment to read: the one that was passed, or else the process's own."""
    return os.environ if environment is None else environment


def whole(environment: Mapping[str, str], name: str, default: int, high: int) -> int:
    """A whole number from 0 to `high`."""
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and int(text[:20]) <= high):
        raise InvalidInput(f"{name} must be a whole number from 0 to {high}, not {text!r}")
    return int(text)


def real(environment: Mapping[str, str], name: str, default: float, high: float) -> float:
    """A number from 0 to `high`."""
    text = environment.get(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= high:
        raise InvalidInput(f"{name} must be a number from 0 to {high:g}, not {text!r}")
    return value
