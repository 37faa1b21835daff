"""Cuts an expression into tokens, each with its place."""

from __future__ import annotations

import re
from typing import Any

from sprat.core.record import Record
from sprat.machines.scope import MAX_NUMBER, TemplateError

PATTERN = re.compile(
    r"""\s*(?:
      (?P<number>\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)
    | (?P<name>[^\W\d]\w*)
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<sign>\*\*|//|==|!=|<=|>=|[-+*/%~<>()\[\]{},.:|=])
    | (?P<other>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
WHITE = re.compile(r"\s*")
# As in Python, except names of characters and halves of surrogate pairs; others stay as written.
ESCAPE = re.compile(
    r"""\\(?:[\n\\'"abfnrtv]|[0-3]?[0-7]{1,2}|x[0-9a-fA-F]{2}|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})"""
)
MAX_LENGTH = 10_000  # characters of an expression
MAX_DIGITS = 30
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, frozenset(")]}")


class Token(Record):
    """A piece of an expression: its kind, its value, and where it begins in the text."""

    kind: str  # number, name, text, sign or end
    value: Any
    place: int


class Misspelt(TemplateError):
    """The expression cannot be understood; `place` says where in the text."""

    def __init__(self, why: str, place: int) -> None:
        super().__init__(why)
        self.place = place


def tokens(text: str, start: int = 0, *, in_braces: bool = False) -> tuple[list[Token], int]:
    """The tokens of an expression, and where it ends: with the text, or with the `}}` that
    closes the braces it stands in."""
    found: list[Token] = []
    open_signs: list[str] = []
    place = start
    while True:
        at = WHITE.match(text, place).end()  # type: ignore[union-attr]  # it always matches
        if at - start > MAX_LENGTH:
            raise Misspelt(f"an expression has at most {MAX_LENGTH:,} characters", start)
        if in_braces and not open_signs and text.startswith("}}", at):
            return [*found, Token(kind="end", value="", place=at)], at + 2
        if at >= len(text):
            if in_braces:
                raise Misspelt("{{ is not closed: }} is missing", start - 2)
            return [*found, Token(kind="end", value="", place=at)], at
        token, place = _token(text, at)
        if token.kind == "sign":
            _balance(token, open_signs)
        found.append(token)


def _token(text: str, at: int) -> tuple[Token, int]:
    match = PATTERN.match(text, at)
    if match is None or match.lastgroup == "other":
        letter = text[at]
        why = "a text is not closed" if letter in "'\"" else f"{letter!r} has no meaning here"
        raise Misspelt(why, at)
    kind = str(match.lastgroup)
    return Token(kind=kind, value=_value(kind, match[kind], at), place=at), match.end()


def _value(kind: str, text: str, at: int) -> object:
    if kind == "text":
        return ESCAPE.sub(lambda found: found[0].encode().decode("unicode-escape"), text[1:-1])
    if kind != "number":
        return text
    if len(text) > MAX_DIGITS:
        raise Misspelt("this number is too long", at)
    digits = text.replace("_", "")
    value = int(digits) if digits.isdecimal() else float(digits)
    if value > MAX_NUMBER:
        raise Misspelt("this number is too large", at)
    return value


def _balance(token: Token, open_signs: list[str]) -> None:
    if token.value in OPENING:
        open_signs.append(OPENING[token.value])
    elif token.value in CLOSING:
        expected = open_signs.pop() if open_signs else ""
        if expected != token.value:
            why = f"{expected} is missing" if expected else f"{token.value} closes nothing"
            raise Misspelt(why, token.place)
