"""JSON text, by the C half of the standard module alone.

Its Python half imports `re`, which costs a worker that starts from nothing half of what Python's
own start does. What is unusual (another Python, text that is not JSON) goes through `json` itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_WHITE = " \t\n\r"
_scan: Callable[[str, int], tuple[Any, int]] | None = None
_encode: Callable[[object, int], tuple[str, ...]] | None = None


class _Rules:
    """What json.JSONDecoder has by default."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}

    @staticmethod
    def parse_constant(name: str) -> float:
        return float({"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}[name])


def loads(text: str | bytes) -> Any:
    """As json.loads."""
    if _scan is not None and isinstance(text, str):
        stripped = text.strip(_WHITE)
        try:
            value, end = _scan(stripped, 0)
            if end == len(stripped):
                return value
        except (StopIteration, ValueError, SystemError):
            pass  # json has the words for what is wrong, and the scanner none before it is imported
    import json

    return json.loads(text)


def dumps(value: object) -> str:
    """As json.dumps, without white space, escapes for what is not ASCII, or not-a-number. What
    contains itself is a RecursionError."""
    if _encode is not None:
        return "".join(_encode(value, 0))
    import json

    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def printable(text: str) -> str:
    """The text without control, C1 and bidirectional characters: jobs, results and servers choose
    it, and must not write to a terminal. Each of them is written as JSON does (\\u001b), so JSON
    stays the same value. Line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _escape(c) for c in text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2))


def _refuse(value: object) -> None:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


try:
    from _json import encode_basestring as _quote
    from _json import make_encoder, make_scanner

    _scan = make_scanner(_Rules)  # type: ignore[arg-type]  # any object with these attributes does
    # Without a memo of what it is inside of, it has no state: one for all calls and threads.
    _encode = make_encoder(None, _refuse, _quote, None, ":", ",", False, False, False)
    _example = '{"a":[1,2.5,null,"é"]}'
    if dumps(loads(_example)) != _example:
        raise TypeError("this Python's _json is another one")
except (ImportError, TypeError, AttributeError):
    _scan = _encode = None
