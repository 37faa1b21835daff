"""Numbers from environment variables: an unset or empty one is the default, nonsense is refused."""

from __future__ import annotations

import os

from sprat.core.tenant_limits import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sprat.core.fields import Field

MAX_TENANT_LIMIT = 1_000_000


def tenant_limit() -> int | None:
    """The `tenant_limit` of pools that have none; None where the variable is not set."""
    if not os.environ.get(VARIABLE, "").strip():
        return None
    return whole(os.environ, VARIABLE, 0, MAX_TENANT_LIMIT)


def given(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    """The environment to read: the one that was passed, or else the process's own."""
    return os.environ if environment is None else environment


def whole(environment: Mapping[str, str], name: str, default: int, high: int) -> int:
    """A whole number from 0 to `high`."""
    from sprat.core import fields

    return int(_read(environment, name, fields.whole(0, high), default))


def real(environment: Mapping[str, str], name: str, default: float, high: float) -> float:
    """A number from 0 to `high`."""
    from sprat.core import fields

    return float(_read(environment, name, fields.number(0, high), default))


def numbers(
    environment: Mapping[str, str], table: Mapping[str, Field], prefix: str = ""
) -> dict[str, Any]:
    """The values of those variables of a table of fields that are set: MAX_WORKERS, for one."""
    values = {
        name: _read(environment, f"{prefix}{name.upper()}", field) for name, field in table.items()
    }
    return {name: value for name, value in values.items() if value is not None}


def _read(environment: Mapping[str, str], name: str, field: Field, default: Any = None) -> Any:
    text = environment.get(name, "").strip()
    return field(_number(text), name) if text else default


def _number(text: str) -> int | float | str:
    """A text that is no number as it is, for the field to refuse."""
    if text.isascii() and "_" not in text:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
    return text
