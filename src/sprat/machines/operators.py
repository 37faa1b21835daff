"""The operators of expressions, on plain data alone, each paid for from the scope's budget."""

from __future__ import annotations

from sprat.machines.scope import MAX_TEXT, TemplateError, Undefined, kind, there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sprat.machines.scope import Scope

    Operator = Callable[[Scope, Any, Any], Any]

MAX_EXPONENT = 64


def member(scope: Scope, value: Any, name: Any, path: str) -> Any:
    """`value.name` and `value[name]`: an entry of a mapping or list; nothing else has members."""
    if isinstance(value, Undefined):
        raise TemplateError(f"{value.name} is not defined")
    if isinstance(name, str) and name.startswith("_"):
        raise TemplateError(f"{path}: names that begin with _ are out of reach")
    if isinstance(value, dict) and isinstance(name, str | int | float | bool | None):
        return value[name] if name in value else Undefined(path)
    if isinstance(value, list | str) and is_whole(name):
        return value[name] if -len(value) <= name < len(value) else Undefined(path)
    if value is None:
        raise TemplateError(f"{path}: there is nothing that could have {_quoted(name)}")
    raise TemplateError(f"{path}: {kind(value)} has no {_quoted(name)}")


def part(scope: Scope, value: Any, bounds: list[Any]) -> Any:
    """`value[start:stop:step]`."""
    if not isinstance(there(value), list | str):
        raise TemplateError(f"{kind(value)} cannot be cut into slices")
    if not all(bound is None or is_whole(bound) for bound in bounds):
        raise TemplateError("the bounds of a slice are whole numbers")
    cut = value[slice(*bounds)]
    return scope.text(cut) if isinstance(cut, str) else scope.weigh(cut)


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _quoted(name: object) -> str:
    return repr(name)[:60] if isinstance(name, str | int | float) else kind(name)


def _numbers(word: str, compute: Callable[[Any, Any], Any]) -> Operator:
    def apply(scope: Scope, left: Any, right: Any) -> Any:
        if not is_number(there(left)) or not is_number(there(right)):
            raise TemplateError(f"{kind(left)} and {kind(right)} cannot be {word}")
        return scope.number(compute(left, right))

    return apply


_added = _numbers("added", lambda a, b: a + b)
_multiplied = _numbers("multiplied", lambda a, b: a * b)
_power = _numbers("raised", lambda a, b: a**b)


def _add(scope: Scope, left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        return scope.text(left + right)
    if isinstance(left, list) and isinstance(right, list):
        return scope.weigh(left + right)
    return _added(scope, left, right)


def _multiply(scope: Scope, left: Any, right: Any) -> Any:
    if is_whole(left) and isinstance(right, str | list):
        left, right = right, left
    if is_whole(right) and isinstance(left, str | list):
        times = max(0, right)
        if len(left) * times > MAX_TEXT:
            raise TemplateError(f"{kind(left)} repeated {times} times is too large")
        if isinstance(left, str):
            return scope.text(left * times)
        scope.spend(len(left) * times)
        return scope.weigh(left * times)
    return _multiplied(scope, left, right)


def _raise(scope: Scope, left: Any, right: Any) -> Any:
    if is_number(right) and abs(right) > MAX_EXPONENT:
        raise TemplateError(f"an exponent is at most {MAX_EXPONENT}")
    return _power(scope, left, right)


def _join(scope: Scope, left: Any, right: Any) -> Any:
    return scope.text(shown(scope, left) + shown(scope, right))


def _is_in(scope: Scope, left: Any, right: Any) -> bool:
    if isinstance(there(right), str) and not isinstance(left, str):
        raise TemplateError(f"{kind(left)} cannot be in a text")
    if not isinstance(right, str | list | dict):
        raise TemplateError(f"nothing can be in {kind(right)}")
    scope.weigh(left)
    return there(left) in scope.weigh(right)


def _compared(compare: Callable[[Any, Any], bool]) -> Operator:
    return lambda scope, left, right: compare(scope.weigh(left), scope.weigh(right))


def _ordered(compare: Callable[[Any, Any], bool]) -> Operator:
    def apply(scope: Scope, left: Any, right: Any) -> bool:
        return compare(scope.weigh(there(left)), scope.weigh(there(right)))

    return apply


def shown(scope: Scope, value: Any) -> str:
    """A value inside a text: nothing as nothing, what is no text as JSON."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, Undefined):
        return ""
    return as_json(scope, value)


def as_json(scope: Scope, value: Any) -> str:
    from sprat.core import jsontext

    return scope.text(jsontext.dumps(scope.weigh(there(value))))


BINARY: dict[str, Operator] = {
    "+": _add,
    "-": _numbers("subtracted", lambda a, b: a - b),
    "*": _multiply,
    "/": _numbers("divided", lambda a, b: a / b),
    "//": _numbers("divided", lambda a, b: a // b),
    "%": _numbers("divided", lambda a, b: a % b),
    "**": _raise,
    "~": _join,
}
COMPARISONS: dict[str, Operator] = {
    "==": _compared(lambda a, b: bool(a == b)),
    "!=": _compared(lambda a, b: bool(a != b)),
    "<": _ordered(lambda a, b: bool(a < b)),
    "<=": _ordered(lambda a, b: bool(a <= b)),
    ">": _ordered(lambda a, b: bool(a > b)),
    ">=": _ordered(lambda a, b: bool(a >= b)),
    "in": _is_in,
    "not in": lambda scope, left, right: not _is_in(scope, left, right),
}
