"""Expressions as Jinja writes them (`context.jobs | length > 0`), turned into functions of a scope.

There is no way from here to Python: members are entries of mappings and lists, and what can be
called is in three tables. Statements and assignments do not exist.
"""

from __future__ import annotations

from typing import Any, NoReturn

from sprat.core.did_you_mean import did_you_mean
from sprat.machines import nodes
from sprat.machines.filters import FILTERS, FUNCTIONS
from sprat.machines.operators import COMPARISONS
from sprat.machines.scope import Undefined
from sprat.machines.tokens import Misspelt, Token, tokens
from sprat.machines.value_tests import COMPARING, TESTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.machines.nodes import Node


CONSTANTS = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "none": None,
    "None": None,
}
WORDS = frozenset(("and", "or", "not", "in", "is", "if", "else"))
MAX_NESTING = 40
MOST_OPERATORS = 300  # in one row: each is a call inside the next

# From loose to tight; those of one row from left to right.
SUMS = (("+", "-"), ("~",), ("*", "/", "//", "%"))


def compiled(text: str) -> Node:
    """An expression on its own, such as a transition's condition."""
    found, _ = tokens(text)
    return ExpressionParser(found).whole()


def compiled_in_braces(text: str, start: int) -> tuple[Node, int]:
    """The expression after a `{{`, and the place behind its `}}`."""
    found, end = tokens(text, start, in_braces=True)
    return ExpressionParser(found).whole(), end


class ExpressionParser:
    """One pass over the tokens; every method reads one kind of expression and returns a node."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._choice()
        if self._next.kind != "end":
            self._complain(f"{self._next.value!r} does not belong here")
        return node

    # -- tokens -----------------------------------------------------------------------------

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        self._at += 1
        return token

    def _is(self, *values: str) -> bool:
        return self._next.kind in ("sign", "name") and self._next.value in values

    def _skip(self, value: str) -> bool:
        if self._is(value):
            self._at += 1
            return True
        return False

    def _expect(self, value: str) -> None:
        if not self._skip(value):
            self._complain(f"{value} is missing")

    def _complain(self, why: str) -> NoReturn:
        if self._next.kind == "end":
            why = "the expression ends too early" if "missing" not in why else why
        raise Misspelt(why, self._next.place)

    # -- from loose to tight ----------------------------------------------------------------

    def _choice(self) -> Node:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise Misspelt(f"it is nested too deeply: {MAX_NESTING} levels", self._next.place)
        node = self._any()
        if self._skip("if"):
            condition = self._any()
            other = self._choice() if self._skip("else") else nodes.constant(Undefined("the else"))
            node = nodes.choice(condition, node, other)
        self._depth -= 1
        return node

    def _any(self) -> Node:
        found = [self._all()]
        while self._skip("or"):
            found.append(self._all())
        return found[0] if len(found) == 1 else nodes.first(found, wanted=True)

    def _all(self) -> Node:
        found = [self._negated()]
        while self._skip("and"):
            found.append(self._negated())
        return found[0] if len(found) == 1 else nodes.first(found, wanted=False)

    def _negated(self) -> Node:
        negations = 0
        while self._skip("not"):
            negations += 1
        node = self._comparison()
        return nodes.negation(node, negations % 2 == 1) if negations else node

    def _comparison(self) -> Node:
        first, rest = self._sum(0), []
        while name := self._comparison_sign():
            rest.append((COMPARISONS[name], self._sum(0)))
        return nodes.comparison(first, rest) if rest else first

    def _comparison_sign(self) -> str:
        if self._is("not") and self._tokens[self._at + 1].value == "in":
            self._at += 2
            return "not in"
        return str(self._take().value) if self._is(*COMPARISONS) else ""

    def _sum(self, row: int) -> Node:
        if row == len(SUMS):
            return self._power()
        node, length = self._sum(row + 1), 0
        while self._is(*SUMS[row]):
            length += 1
            if length > MOST_OPERATORS:
                self._complain(f"there are more than {MOST_OPERATORS} operators in a row")
            node = nodes.binary(str(self._take().value), node, self._sum(row + 1))
        return node

    def _power(self) -> Node:
        node, length = self._signed(), 0
        while self._skip("**"):
            length += 1
            if length > MOST_OPERATORS:
                self._complain(f"there are more than {MOST_OPERATORS} operators in a row")
            node = nodes.binary("**", node, self._signed())
        return node

    def _signed(self) -> Node:
        """A value with its signs; filters are for what comes out, as in Jinja."""
        signs = 0
        minus = 0
        while self._is("-", "+"):
            signs += 1
            minus += self._take().value == "-"
        node = self._postfixed()
        return self._filtered(nodes.signed(node, minus % 2 == 1) if signs else node)

    def _filtered(self, node: Node) -> Node:
        length = 0
        while length <= MOST_OPERATORS:
            length += 1
            if self._skip("|"):
                node = self._called(FILTERS, "filter", node)
            elif self._skip("is"):
                is_not = self._skip("not")
                node = nodes.negation(self._tested(node), is_not)
                if self._is("is"):
                    self._complain("two tests in a row need brackets")
            else:
                return node
        raise Misspelt(f"there are more than {MOST_OPERATORS} filters", self._next.place)

    def _tested(self, node: Node) -> Node:
        if self._is("in"):
            self._take()
            return nodes.comparison(node, [(COMPARISONS["in"], self._postfixed())])
        return self._called(TESTS, "test", node)

    def _called(self, table: Any, what: str, node: Node) -> Node:
        token = self._take()
        if token.kind != "name" or token.value not in table:
            near = did_you_mean(token.value, table)
            raise Misspelt(f"there is no {what} {token.value!r}{near}", token.place)
        rest: list[Node] = []
        named: dict[str, Node] = {}
        if (what == "filter" or token.value in COMPARING) and self._skip("("):
            rest, named = self._arguments()
        elif what == "test" and token.value in COMPARING:
            rest = [self._postfixed()]
        return nodes.called(table, what, token.value, [node, *rest], named)

    def _arguments(self) -> tuple[list[Node], dict[str, Node]]:
        rest: list[Node] = []
        named: dict[str, Node] = {}
        while not self._skip(")"):
            is_named = self._next.kind == "name" and self._tokens[self._at + 1].value == "="
            if is_named and self._tokens[self._at + 1].kind == "sign":
                name = str(self._take().value)
                self._take()
                named[name] = self._choice()
            else:
                rest.append(self._choice())
            if not self._is(")"):
                self._expect(",")
        return rest, named

    # -- values -----------------------------------------------------------------------------

    def _postfixed(self) -> Node:
        start = self._next
        node = self._value()
        path = str(start.value) if start.kind == "name" else "this"
        length = 0
        while True:
            length += 1
            if length > MOST_OPERATORS:
                self._complain(f"there are more than {MOST_OPERATORS} members in a row")
            if self._skip("."):
                token = self._take()
                if token.kind not in ("name", "number"):
                    raise Misspelt("a name is missing after the dot", token.place)
                if self._skip("("):
                    node = nodes.method(node, token.value, *self._arguments())
                    continue
                path = f"{path}.{token.value}"
                node = nodes.member_of(node, nodes.constant(token.value), path)
            elif self._skip("["):
                node, path = self._subscript(node, path)
            elif self._is("("):
                self._complain("only filters, tests, range and a few methods can be called")
            else:
                return node

    def _subscript(self, node: Node, path: str) -> tuple[Node, str]:
        nothing = nodes.constant(None)
        bounds = [nothing if self._is(":", "]") else self._choice()]
        while self._skip(":"):
            bounds.append(nothing if self._is(":", "]") else self._choice())
        self._expect("]")
        path = f"{path}[...]"
        if len(bounds) == 1:
            return nodes.member_of(node, bounds[0], path), path
        if len(bounds) > 3:
            self._complain("a slice has at most three parts")
        return nodes.slice_of(node, bounds), path

    def _value(self) -> Node:
        token = self._take()
        if token.kind in ("number", "text"):
            return nodes.constant(token.value)
        if token.kind == "name" and token.value not in WORDS:
            return self._named(token)
        if token.kind == "sign" and token.value == "(":
            return self._group()
        if token.kind == "sign" and token.value == "[":
            return nodes.list_of(self._elements("]"))
        if token.kind == "sign" and token.value == "{":
            return self._mapping()
        why = "the expression ends too early" if token.kind == "end" else "does not belong here"
        raise Misspelt(why if token.kind == "end" else f"{token.value!r} {why}", token.place)

    def _named(self, token: Token) -> Node:
        name = str(token.value)
        if name in CONSTANTS:
            return nodes.constant(CONSTANTS[name])
        if name == "null":
            return nodes.NULL
        if self._is("("):
            if name not in FUNCTIONS:
                raise Misspelt(f"there is no function {name!r}: only range", token.place)
            self._take()
            return nodes.called(FUNCTIONS, "function", name, *self._arguments())
        if name.startswith("_"):
            raise Misspelt(f"{name}: names that begin with _ are out of reach", token.place)
        return nodes.named(name)

    def _group(self) -> Node:
        node = self._choice()
        if self._skip(")"):
            return node
        self._expect(",")
        return nodes.list_of([node, *self._elements(")")])

    def _elements(self, end: str) -> list[Node]:
        found = []
        while not self._skip(end):
            found.append(self._choice())
            if not self._is(end):
                self._expect(",")
        return found

    def _mapping(self) -> Node:
        pairs = []
        while not self._skip("}"):
            key = self._choice()
            self._expect(":")
            pairs.append((key, self._choice()))
            if not self._is("}"):
                self._expect(",")
        return nodes.mapping_of(pairs)
