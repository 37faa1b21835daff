"""What expressions can call: filters (`value | name`), tests (`value is name`), functions, methods.

The names and meanings are those of Jinja. Each gets the scope, which it asks before it walks
through a value or makes one.
"""

from __future__ import annotations

from sprat.machine.operators import as_json, is_number, is_whole, member, shown
from sprat.machine.scope import MAX_TEXT, Scope, TemplateError, Undefined, kind, there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_DIGITS = 20


def listed(scope: Scope, value: Any) -> list[Any]:
    """What a filter goes through: the elements of a list, the keys of a mapping, letters."""
    if not isinstance(there(value), list | dict | str):
        raise TemplateError(f"{kind(value)} is not a list")
    scope.weigh(value)
    return list(value)


def _default(_: Scope, value: Any, other: Any = "", boolean: bool = False) -> Any:
    return other if isinstance(value, Undefined) or (boolean and not value) else value


def _length(_: Scope, value: Any) -> int:
    if not isinstance(there(value), list | dict | str):
        raise TemplateError(f"{kind(value)} has no length")
    return len(value)


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def apply(scope: Scope, value: Any, *, attribute: str | None = None) -> Any:
        found = listed(scope, value)
        if not found:
            return Undefined("the largest or smallest of nothing")
        return choose(found, key=_by(scope, attribute))

    return apply


def _by(scope: Scope, attribute: str | None) -> Callable[[Any], Any] | None:
    return None if attribute is None else lambda one: there(picked(scope, one, attribute))


def picked(scope: Scope, value: Any, path: str) -> Any:
    """`a.b` of a value, as filters with `attribute` name it."""
    if not isinstance(path, str):
        raise TemplateError("attribute is a text")
    for name in path.split("."):
        value = member(scope, value, int(name) if name.isdecimal() else name, path)
    return value


def _sum(scope: Scope, value: Any, attribute: str | None = None, start: float = 0) -> Any:
    found = listed(scope, value)
    numbers = found if attribute is None else [picked(scope, one, attribute) for one in found]
    if not all(is_number(there(one)) for one in (*numbers, start)):
        raise TemplateError("only numbers can be summed")
    return scope.number(sum(numbers, start))


def _sort(
    scope: Scope, value: Any, reverse: bool = False, attribute: str | None = None
) -> list[Any]:
    return sorted(listed(scope, value), key=_by(scope, attribute), reverse=bool(reverse))


def _unique(scope: Scope, value: Any) -> list[Any]:
    found: list[Any] = []
    for one in listed(scope, value):
        scope.spend(len(found))
        if one not in found:
            found.append(one)
    return found


def _join(scope: Scope, value: Any, between: Any = "", attribute: str | None = None) -> str:
    parts = listed(scope, value)
    if attribute is not None:
        parts = [picked(scope, one, attribute) for one in parts]
    texts = [shown(scope, one) for one in parts]
    glue = shown(scope, between)
    if sum(map(len, texts)) + len(glue) * len(texts) > MAX_TEXT:
        raise TemplateError(f"it makes a text of more than {MAX_TEXT:,} characters")
    return scope.text(glue.join(texts))


def _replace(scope: Scope, value: Any, old: Any, new: Any) -> str:
    text, old, new = (shown(scope, one) for one in (value, old, new))
    if len(text) + (text.count(old) * len(new)) > MAX_TEXT:
        raise TemplateError(f"it makes a text of more than {MAX_TEXT:,} characters")
    return scope.text(text.replace(old, new))


def _split(scope: Scope, value: Any, between: str | None = None) -> list[Any]:
    return list(scope.weigh(shown(scope, value).split(between)))


def _texted(change: Callable[[str], str]) -> Callable[..., Any]:
    return lambda scope, value: scope.text(change(shown(scope, there(value))))


def _int(scope: Scope, value: Any, default: int = 0) -> Any:
    try:
        return scope.number(int(float(value)) if isinstance(value, float) else int(value))
    except (TypeError, ValueError, OverflowError):
        return default


def _float(scope: Scope, value: Any, default: float = 0.0) -> Any:
    try:
        return scope.number(float(value))
    except (TypeError, ValueError, OverflowError):
        return default


def _round(scope: Scope, value: Any, precision: int = 0, method: str = "common") -> Any:
    if not is_number(value) or not is_whole(precision) or abs(precision) > MAX_DIGITS:
        raise TemplateError(f"{kind(value)} cannot be rounded to {precision!r} places")
    factor = 10**precision
    if method == "ceil":
        return -(-value * factor // 1) / factor
    return (value * factor // 1) / factor if method == "floor" else float(round(value, precision))


def _abs(_: Scope, value: Any) -> Any:
    if not is_number(there(value)):
        raise TemplateError(f"{kind(value)} is no number")
    return abs(value)


def _map(scope: Scope, value: Any, name: str | None = None, *rest: Any, **named: Any) -> list[Any]:
    found = listed(scope, value)
    if name is not None:
        return [call(scope, FILTERS, "filter", name, one, *rest, **named) for one in found]
    path, default = named.pop("attribute", ""), named.pop("default", None)
    values = [picked(scope, one, path) for one in found]
    return [default if isinstance(one, Undefined) else one for one in values]


def _chosen(wanted: bool, *, has_attribute: bool) -> Callable[..., Any]:
    def apply(scope: Scope, value: Any, *rest: Any) -> list[Any]:
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
    "title": _texted(str.title),
    "tojson": as_json,
    "trim": _texted(str.strip),
    "unique": _unique,
    "upper": _texted(str.upper),
}
TESTS: dict[str, Callable[..., Any]] = {
    "boolean": lambda _, value: isinstance(value, bool),
    "defined": lambda _, value: not isinstance(value, Undefined),
    "eq": lambda scope, value, other: scope.weigh(value) == scope.weigh(other),
    "even": lambda _, value: there(value) % 2 == 0,
    "false": lambda _, value: value is False,
    "float": lambda _, value: isinstance(value, float),
    "ge": lambda scope, value, other: scope.weigh(there(value)) >= scope.weigh(there(other)),
    "gt": lambda scope, value, other: scope.weigh(there(value)) > scope.weigh(there(other)),
    "in": lambda scope, value, other: scope.weigh(value) in scope.weigh(there(other)),
    "integer": lambda _, value: is_whole(value),
    "iterable": lambda _, value: isinstance(value, list | dict | str),
    "le": lambda scope, value, other: scope.weigh(there(value)) <= scope.weigh(there(other)),
    "lt": lambda scope, value, other: scope.weigh(there(value)) < scope.weigh(there(other)),
    "mapping": lambda _, value: isinstance(value, dict),
    "ne": lambda scope, value, other: scope.weigh(value) != scope.weigh(other),
    "none": lambda _, value: value is None,
    "number": lambda _, value: is_number(value),
    "odd": lambda _, value: there(value) % 2 == 1,
    "sequence": lambda _, value: isinstance(value, list | str),
    "string": lambda _, value: isinstance(value, str),
    "true": lambda _, value: value is True,
    "undefined": lambda _, value: isinstance(value, Undefined),
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
        "strip": FILTERS["trim"],
        "upper": FILTERS["upper"],
    },
}
