"""The pieces that expressions are made of: each is a function of a scope, made from others."""

from __future__ import annotations

from sprat.machines.filters import METHODS, call
from sprat.machines.operators import BINARY, is_number, member, part
from sprat.machines.scope import Scope, TemplateError, Undefined, kind, there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Node = Callable[[Scope], Any]


def step(scope: Scope) -> bool:
    scope.spend(1)
    return True


def named(name: str) -> Node:
    return lambda scope: scope.names.get(name, Undefined(name)) if step(scope) else None


def constant(value: Any) -> Node:
    return lambda scope: value


NULL = constant(None)  # the word null


def choice(condition: Node, yes: Node, no: Node) -> Node:
    return lambda scope: yes(scope) if condition(scope) else no(scope)


def first(nodes: list[Node], *, wanted: bool) -> Node:
    """`or` (wanted) and `and`: the first value that settles it, else the last."""

    def evaluate(scope: Scope) -> Any:
        value = None
        for node in nodes:
            value = node(scope)
            if bool(value) is wanted:
                break
        return value

    return evaluate


def negation(node: Node, is_not: bool) -> Node:
    return lambda scope: bool(node(scope)) is not is_not


def comparison(first: Node, rest: list[Any]) -> Node:
    """A row of comparisons. Beside the word null, what is not there is none."""
    if NULL in (first, *(node for _, node in rest)):
        first, rest = _or_none(first), [(compare, _or_none(node)) for compare, node in rest]

    def evaluate(scope: Scope) -> bool:
        left = first(scope)
        for compare, node in rest:
            scope.spend(1)
            right = node(scope)
            if not compare(scope, left, right):
                return False
            left = right
        return True

    return evaluate


def _or_none(node: Node) -> Node:
    def evaluate(scope: Scope) -> Any:
        value = node(scope)
        return None if isinstance(value, Undefined) else value

    return evaluate


def binary(name: str, left: Node, right: Node) -> Node:
    operator = BINARY[name]
    return lambda scope: operator(scope, left(scope), right(scope)) if step(scope) else None


def signed(node: Node, is_minus: bool) -> Node:
    def evaluate(scope: Scope) -> Any:
        value = there(node(scope))
        if not is_number(value):
            raise TemplateError(f"{kind(value)} has no sign")
        return -value if is_minus else value

    return evaluate


def member_of(node: Node, name: Node, path: str) -> Node:
    return lambda scope: member(scope, node(scope), name(scope), path) if step(scope) else None


def slice_of(node: Node, bounds: list[Node]) -> Node:
    return lambda scope: part(scope, node(scope), [bound(scope) for bound in bounds])


def called(table: Any, what: str, name: str, rest: list[Node], named: dict[str, Node]) -> Node:
    def evaluate(scope: Scope) -> Any:
        values = [node(scope) for node in rest]
        return call(
            scope, table, what, name, *values, **{key: node(scope) for key, node in named.items()}
        )

    return evaluate


def method(node: Node, name: str, rest: list[Node], named: dict[str, Node]) -> Node:
    def evaluate(scope: Scope) -> Any:
        value = there(node(scope))
        table = METHODS.get(type(value), {})
        if name not in table:
            raise TemplateError(f"{kind(value)} has no method {name!r}")
        values = [one(scope) for one in rest]
        options = {key: one(scope) for key, one in named.items()}
        return call(scope, table, "method", name, value, *values, **options)

    return evaluate


def list_of(nodes: list[Node]) -> Node:
    return lambda scope: scope.weigh([there(node(scope)) for node in nodes])


def mapping_of(pairs: list[tuple[Node, Node]]) -> Node:
    def evaluate(scope: Scope) -> Any:
        made = {}
        for key, value in pairs:
            name = key(scope)
            if not isinstance(name, str):
                raise TemplateError(f"the key of a mapping is a text, not {kind(name)}")
            made[name] = there(value(scope))
        return scope.weigh(made)

    return evaluate
