"""What an expression may see, and how much work it may cause.

Every step, every element of a new list and every stretch of a new text is paid from a budget that
is set before the template runs, so none can take long or make much, whatever it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sprat.core.errors import SpratError

BUDGET = 200_000  # steps and elements; a few hundredths of a second
MAX_TEXT = 1_000_000  # characters of a text that a template makes
LETTERS_A_STEP = 32  # of a text: they are copied faster than lists are made
MAX_NUMBER = 1 << 64
MAX_DEPTH = 100


class TemplateError(SpratError):
    """The expression cannot be evaluated."""


class Undefined:
    """What is not there. It has the name that was asked for; only `default`, tests, comparisons
    and conditions may use it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Undefined)

    def __hash__(self) -> int:
        return hash(Undefined)


class Scope:
    """The names of one evaluation, and what is left of its budget."""

    __slots__ = ("_left", "names")

    def __init__(self, names: Mapping[str, Any], budget: int = BUDGET) -> None:
        self.names = names
        self._left = budget

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TemplateError(f"it is too much work: {BUDGET:,} steps and elements are the most")

    def weigh(self, value: Any) -> Any:
        """Pay for all that is inside a value, which somebody is about to walk through or made;
        what is shared inside counts every time, as it would in JSON."""
        waiting = [(value, 0)]
        while waiting:
            one, depth = waiting.pop()
            if isinstance(one, str):
                self.spend(1 + len(one) // LETTERS_A_STEP)
                continue
            if depth > MAX_DEPTH:
                raise TemplateError(f"it is nested too deeply: {MAX_DEPTH} levels at most")
            if isinstance(one, list):
                self.spend(1 + len(one))
                waiting += [(inner, depth + 1) for inner in one]
            elif isinstance(one, dict):
                self.spend(1 + 2 * len(one))
                waiting += [(inner, depth + 1) for inner in one.values()]
        return value

    def text(self, value: str) -> str:
        """A text that was just made."""
        if len(value) > MAX_TEXT:
            raise TemplateError(f"it makes a text of more than {MAX_TEXT:,} characters")
        self.spend(1 + len(value) // LETTERS_A_STEP)
        return value

    def number(self, value: float) -> float:
        """A number that was just computed."""
        if isinstance(value, complex) or not -MAX_NUMBER <= value <= MAX_NUMBER:
            raise TemplateError("it makes a number that is too large")
        return value


def there(value: Any) -> Any:
    """The value, which has to be there."""
    if isinstance(value, Undefined):
        raise TemplateError(f"{value.name} is not defined")
    return value


def kind(value: object) -> str:
    """How a sentence calls a value."""
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a text", list: "a list", dict: "a mapping", int: "a number", float: "a number"}
    return "nothing" if value is None else names.get(type(value), "something else")
