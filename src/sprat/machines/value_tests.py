"""What expressions can ask of a value: the tests (`value is name`) of Jinja."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sprat.machines.operators import COMPARISONS, is_whole, shown
from sprat.machines.scope import TemplateError, Undefined, kind, there


def _remainder(value: Any, number: Any) -> Any:
    if not isinstance(there(value), int | float) or not isinstance(there(number), int | float):
        raise TemplateError(f"{kind(value)} cannot be divided by {kind(number)}")
    return value % number


TESTS: dict[str, Callable[..., Any]] = {
    "boolean": lambda _, value: isinstance(value, bool),
    "defined": lambda _, value: not isinstance(value, Undefined),
    "divisibleby": lambda _, value, num: _remainder(value, num) == 0,
    "eq": COMPARISONS["=="],
    "equalto": COMPARISONS["=="],
    "even": lambda _, value: _remainder(value, 2) == 0,
    "false": lambda _, value: value is False,
    "float": lambda _, value: isinstance(value, float),
    "ge": COMPARISONS[">="],
    "greaterthan": COMPARISONS[">"],
    "gt": COMPARISONS[">"],
    "in": COMPARISONS["in"],
    "integer": lambda _, value: is_whole(value),
    "iterable": lambda _, value: isinstance(value, list | dict | str | Undefined),
    "le": COMPARISONS["<="],
    "lessthan": COMPARISONS["<"],
    "lower": lambda scope, value: shown(scope, value).islower(),
    "lt": COMPARISONS["<"],
    "mapping": lambda _, value: isinstance(value, dict),
    "ne": COMPARISONS["!="],
    "none": lambda _, value: value is None,
    "number": lambda _, value: isinstance(value, int | float),
    "odd": lambda _, value: _remainder(value, 2) == 1,
    "sequence": lambda _, value: isinstance(value, list | dict | str | Undefined),
    "string": lambda _, value: isinstance(value, str),
    "true": lambda _, value: value is True,
    "undefined": lambda _, value: isinstance(value, Undefined),
    "upper": lambda scope, value: shown(scope, value).isupper(),
}
# These compare with a second value: `n is divisibleby(3)`, `n is divisibleby 3`.
COMPARING = frozenset(
    ("divisibleby", "eq", "equalto", "ge", "greaterthan", "gt", "in", "le", "lessthan", "lt", "ne")
)
