"""Many texts as one parameter: PostgreSQL's own notation for an array, a few passes over one string
instead of the driver's several calls for each element."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_BETWEEN = "\x1f"  # neither JSON text nor an id of ours contains it


def texts(values: Sequence[str | None]) -> str:
    """For a parameter that is cast to text[]."""
    try:
        joined = _BETWEEN.join(values)  # type: ignore[arg-type]  # a None is what TypeError is for
    except TypeError:
        return "{" + ",".join(["NULL" if v is None else _quoted(v) for v in values]) + "}"
    if not values or joined.count(_BETWEEN) != len(values) - 1:
        return "{" + ",".join([_quoted(v) for v in values if v is not None]) + "}"
    return "{" + _quoted(joined).replace(_BETWEEN, '","') + "}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
