"""What expressions can call: filters (`value | name`), functions, methods.

The names, arguments and meanings are those of Jinja; the reference page lists the differences. Each
gets the scope, which it asks before it walks through a value or makes one.
"""

from __future__ import annotations

import re

from sprat.machines.operators import as_json, is_number, is_whole, member, shown
from sprat.machines.scope import MAX_TEXT, Scope, TemplateError, Undefined, kind, there
from sprat.machines.value_tests import TESTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Path = str | int | None  # of a part of each element

MAX_DIGITS = 20
WORD_STARTS = re.compile(r"([-\s({\[<]+)")
WORD = re.compile(r"\w+")


def listed(scope: Scope, value: Any) -> list[Any]:
    """What a filter goes through: the elements of a list, the keys of a mapping, letters."""
    if not isinstance(there(value), list | dict | str):
        raise TemplateError(f"{kind(value)} is not a list")
    scope.weigh(value)
    return list(value)


def _default(_: Scope, value: Any, default_value: Any = "", boolean: bool = False) -> Any:
    return default_value if isinstance(value, Undefined) or (boolean and not value) else value


def _length(_: Scope, value: Any) -> int:
    if not isinstance(there(value), list | dict | str):
        raise TemplateError(f"{kind(value)} has no length")
    return len(value)


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def apply(
        scope: Scope, value: Any, case_sensitive: bool = False, attribute: Path = None
    ) -> Any:
        found = listed(scope, value)
        if not found:
            return Undefined("the largest or smallest of nothing")
        return choose(found, key=_by(scope, attribute, case_sensitive))

    return apply


def _by(scope: Scope, attribute: Path, case_sensitive: bool) -> Callable[[Any], Any]:
    """How two elements are compared: by themselves or a part, and by default without case."""

    def key(one: Any) -> Any:
        part = one if attribute is None else there(picked(scope, one, attribute))
        return part.lower() if isinstance(part, str) and not case_sensitive else part

    return key


def picked(scope: Scope, value: Any, path: Path) -> Any:
    """`a.b` of a value, as filters with `attribute` name it."""
    if not isinstance(path, str) and not is_whole(path):
        raise TemplateError("attribute is a text or a whole number")
    for name in str(path).split("."):
        scope.spend(1)
        index = int(name) if name.removeprefix("-").isdecimal() else name
        value = member(scope, value, index, str(path))
    return value


def _sum(scope: Scope, value: Any, attribute: Path = None, start: float = 0) -> Any:
    found = listed(scope, value)
    numbers = found if attribute is None else [picked(scope, one, attribute) for one in found]
    if not all(is_number(there(one)) for one in (*numbers, start)):
        raise TemplateError("only numbers can be summed")
    return scope.number(sum(numbers, start))


def _sort(
    scope: Scope,
    value: Any,
    reverse: bool = False,
    case_sensitive: bool = False,
    attribute: Path = None,
) -> list[Any]:
    paths = attribute.split(",") if isinstance(attribute, str) else [attribute]
    elements = listed(scope, value)
    scope.spend(len(elements) * (len(paths) - 1))  # before the work: too much is refused at once
    keys = [_by(scope, path, case_sensitive) for path in paths]
    return sorted(elements, key=lambda one: [key(one) for key in keys], reverse=bool(reverse))


def _unique(
    scope: Scope, value: Any, case_sensitive: bool = False, attribute: Path = None
) -> list[Any]:
    key = _by(scope, attribute, case_sensitive)
    keys: list[Any] = []
    found: list[Any] = []
    for one in listed(scope, value):
        scope.spend(len(keys))
        if key(one) not in keys:
            keys.append(key(one))
            found.append(one)
    return found


def _join(scope: Scope, value: Any, d: Any = "", attribute: Path = None) -> str:
    parts = listed(scope, value)
    if attribute is not None:
        parts = [picked(scope, one, attribute) for one in parts]
    texts = [shown(scope, one) for one in parts]
    glue = shown(scope, d)
    if sum(map(len, texts)) + len(glue) * len(texts) > MAX_TEXT:
        raise TemplateError(f"it makes a text of more than {MAX_TEXT:,} characters")
    return scope.text(glue.join(texts))


def _replace(scope: Scope, value: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, old, new = (shown(scope, one) for one in (value, old, new))
    if len(text) + (text.count(old) * len(new)) > MAX_TEXT:
        raise TemplateError(f"it makes a text of more than {MAX_TEXT:,} characters")
    return scope.text(text.replace(old, new, -1 if count is None else count))


def _split(scope: Scope, value: Any, between: str | None = None) -> list[Any]:
    return list(scope.weigh(shown(scope, value).split(between)))


def _texted(change: Callable[[str], str]) -> Callable[..., Any]:
    return lambda scope, value: scope.text(change(shown(scope, there(value))))


def _title(text: str) -> str:
    return "".join(part[:1].upper() + part[1:].lower() for part in WORD_STARTS.split(text))


def _trim(scope: Scope, value: Any, chars: str | None = None) -> str:
    return scope.text(shown(scope, there(value)).strip(chars))


def _int(scope: Scope, value: Any, default: Any = 0, base: int = 10) -> Any:
    try:
        return scope.number(int(value, base) if isinstance(there(value), str) else int(value))
    except (TypeError, ValueError):
        return _int_of_float(scope, value, default)


def _int_of_float(scope: Scope, value: Any, default: Any) -> Any:
    """`'42.23' | int` is 42."""
    try:
        return scope.number(int(float(value)))
    except (TypeError, ValueError, OverflowError):
        return default


def _float(scope: Scope, value: Any, default: Any = 0.0) -> Any:
    try:
        return scope.number(float(there(value)))
    except (TypeError, ValueError):
        return default


def _round(_: Scope, value: Any, precision: int = 0, method: str = "common") -> Any:
    if not is_number(value) or not is_whole(precision) or abs(precision) > MAX_DIGITS:
        raise TemplateError(f"{kind(value)} cannot be rounded to {precision!r} places")
    if method not in ("common", "ceil", "floor"):
        raise TemplateError("a number is rounded by common, ceil or floor")
    if method == "common":
        return round(value, precision)
    scaled = value * 10**precision
    return int(scaled // 1 if method == "floor" else -(-scaled // 1)) / 10**precision


def _abs(_: Scope, value: Any) -> Any:
    if not is_number(there(value)):
        raise TemplateError(f"{kind(value)} is no number")
    return abs(value)


def _map(scope: Scope, value: Any, *rest: Any, **named: Any) -> list[Any]:
    found = listed(scope, value)
    if rest:
        return [call(scope, FILTERS, "filter", rest[0], one, *rest[1:], **named) for one in found]
    path, default = named.pop("attribute", None), named.pop("default", None)
    if named:
        raise TemplateError(f"map has no argument {next(iter(named))}")
    values = [picked(scope, one, path) for one in found]
    return [default if isinstance(one, Undefined) else one for one in values]


def _chosen(wanted: bool, *, has_attribute: bool) -> Callable[..., Any]:
    def apply(scope: Scope, value: Any, *rest: Any) -> list[Any]:
        if has_attribute and not rest:
            raise TemplateError("the name of the attribute is missing")
        attribute, rest = (rest[0], rest[1:]) if has_attribute else (None, rest)

        def fits(one: Any) -> bool:
            seen = one if attribute is None else picked(scope, one, attribute)
            if not rest:
                return bool(seen)
            return bool(call(scope, TESTS, "test", rest[0], seen, *rest[1:]))

        return [one for one in listed(scope, value) if fits(one) is wanted]

    return apply


def _items(scope: Scope, value: Any) -> list[Any]:
    if not isinstance(there(value), dict):
        raise TemplateError(f"{kind(value)} has no items")
    return [list(pair) for pair in scope.weigh(value).items()]


def range_of(scope: Scope, *bounds: Any) -> list[int]:
    """`range(stop)`, `range(start, stop)`, `range(start, stop, step)`."""
    if not 1 <= len(bounds) <= 3 or not all(is_whole(there(one)) for one in bounds):
        raise TemplateError("range takes one to three whole numbers")
    numbers = range(*bounds)
    scope.spend(_length_of(numbers))
    return list(numbers)


def _length_of(numbers: range) -> int:
    try:
        return len(numbers)
    except OverflowError:
        return MAX_TEXT


def call(
    scope: Scope,
    table: dict[str, Callable[..., Any]],
    what: str,
    name: Any,
    *rest: Any,
    **named: Any,
) -> Any:
    """Call something of a table by its name."""
    if not isinstance(name, str) or name not in table:
        raise TemplateError(f"there is no {what} {name!r}: {', '.join(sorted(table))}")
    scope.spend(1)
    try:
        return table[name](scope, *rest, **named)
    except TypeError as error:
        raise TemplateError(f"{what} {name}: {error}") from None


FILTERS: dict[str, Callable[..., Any]] = {
    "abs": _abs,
    "capitalize": _texted(str.capitalize),
    "count": _length,
    "d": _default,
    "default": _default,
    "first": lambda scope, value: next(
        iter(listed(scope, value)), Undefined("the first of nothing")
    ),
    "float": _float,
    "int": _int,
    "items": _items,
    "join": _join,
    "last": lambda scope, value: (listed(scope, value) or [Undefined("the last of nothing")])[-1],
    "length": _length,
    "list": listed,
    "lower": _texted(str.lower),
    "map": _map,
    "max": _extreme(max),
    "min": _extreme(min),
    "reject": _chosen(False, has_attribute=False),
    "rejectattr": _chosen(False, has_attribute=True),
    "replace": _replace,
    "reverse": lambda scope, value: (
        value[::-1] if isinstance(value, str) else listed(scope, value)[::-1]
    ),
    "round": _round,
    "select": _chosen(True, has_attribute=False),
    "selectattr": _chosen(True, has_attribute=True),
    "sort": _sort,
    "split": _split,
    "string": shown,
    "sum": _sum,
    "title": _texted(_title),
    "tojson": as_json,
    "trim": _trim,
    "unique": _unique,
    "upper": _texted(str.upper),
    "wordcount": lambda scope, value: len(WORD.findall(scope.text(shown(scope, there(value))))),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"range": range_of}


def _get(_: Scope, value: Any, key: Any, default: Any = None) -> Any:
    return value.get(key, default)


# Of a mapping and of a text: what people write out of habit from Python.
METHODS: dict[type, dict[str, Callable[..., Any]]] = {
    dict: {
        "get": _get,
        "items": _items,
        "keys": listed,
        "values": lambda scope, value: list(scope.weigh(value).values()),
    },
    str: {
        "endswith": lambda _, value, end: value.endswith(end),
        "lower": FILTERS["lower"],
        "replace": _replace,
        "split": _split,
        "startswith": lambda _, value, start: value.startswith(start),
        "strip": _trim,
        "upper": FILTERS["upper"],
    },
}
