"""Texts with `{{ expressions }}`, compiled once and filled in with native values.

A text that is one expression has its value: `"{{ 3 }}"` is a number, `"{{ null }}"` is None. In a
longer text the values are written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sprat.machines.expression import compiled, compiled_in_braces
from sprat.machines.operators import shown
from sprat.machines.scope import Scope, TemplateError, Undefined
from sprat.machines.tokens import Misspelt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.machines.nodes import Node


MOST_SHOWN = 80  # characters of an expression in a complaint


class Template:
    """A value of a machine's file: a text with expressions, or a tree of such texts."""

    def __init__(self, source: str, parts: list[str | Node], *, is_native: bool) -> None:
        self.source = source
        self._parts = parts
        self._is_native = is_native

    def __call__(self, names: Mapping[str, Any]) -> Any:
        """The value with these names, or TemplateError."""
        scope = Scope(names)
        try:
            if self._is_native:
                value = self._parts[0](scope)  # type: ignore[operator]  # a node
                return None if isinstance(value, Undefined) else value
            return self._text(scope)
        except TemplateError as error:
            raise TemplateError(f"{_cut(self.source)}: {error}") from None
        except (TypeError, ValueError, ArithmeticError, RecursionError, LookupError) as error:
            raise TemplateError(f"{_cut(self.source)}: {error}") from None

    def _text(self, scope: Scope) -> str:
        said = ""
        for part in self._parts:
            said += part if isinstance(part, str) else shown(scope, part(scope))
            scope.text(said)
        return said


def condition(source: str) -> Template:
    """A transition's condition: an expression, with or without braces around it."""
    stripped = source.strip()
    if "{{" in stripped:
        return text(stripped)
    return Template(stripped, [compiled(stripped)], is_native=True)


def text(source: str) -> Template:
    """A text with expressions in it."""
    for sign, what in (("{%", "statements"), ("{#", "comments")):
        if sign in source:
            raise Misspelt(f"templates have no {what} ({sign})", source.index(sign))
    parts: list[str | Node] = []
    place = 0
    while (start := source.find("{{", place)) >= 0:
        if start > place:
            parts.append(source[place:start])
        node, place = compiled_in_braces(source, start + 2)
        parts.append(node)
    if place < len(source):
        parts.append(source[place:])
    solid = [part for part in parts if not isinstance(part, str) or part.strip()]
    is_native = len(solid) == 1 and not isinstance(solid[0], str)
    return Template(source, solid if is_native else parts, is_native=is_native)


def filled(value: Any, names: Mapping[str, Any]) -> Any:
    """A tree of plain values and templates, with the templates filled in."""
    if isinstance(value, Template):
        return value(names)
    if isinstance(value, dict):
        return {key: filled(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, names) for inner in value]
    return value


def _cut(source: str) -> str:
    shown = " ".join(source.split())
    return shown if len(shown) <= MOST_SHOWN else f"{shown[: MOST_SHOWN - 3]}..."
