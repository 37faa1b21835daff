"""What a value in a machine's file may be: each check returns it, or refuses it with its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from sprat.config.yaml_tree import Leaf
from sprat.core.did_you_mean import did_you_mean
from sprat.core.errors import InvalidInput
from sprat.machines import template
from sprat.machines.tokens import Misspelt

MAX_SECONDS = 10 * 365 * 86400.0


class Checks:
    def __init__(self, path: str) -> None:
        self._path = path

    def value(self, leaf: Leaf, what: str) -> Any:
        if not isinstance(leaf.value, str) or not {"{{", "{%", "{#"} & _pairs(leaf.value):
            return leaf.value
        return self.compiled(leaf, what, template.text, leaf.value)

    def compiled(
        self, leaf: Leaf, what: str, make: Callable[[str], template.Template], source: str
    ) -> template.Template:
        try:
            return make(source)
        except Misspelt as error:
            offset = 0 if leaf.inset is None else leaf.inset + error.place
            place = at(self._path, leaf.line, leaf.column + offset)
            raise InvalidInput(f"{place}: {what}: {error}") from None

    def tree(self, leaf: Leaf, what: str) -> Any:
        if isinstance(leaf.value, dict):
            return {key: self.tree(one, f"{what}.{key}") for key, one in leaf.value.items()}
        if isinstance(leaf.value, list):
            return [self.tree(one, what) for one in leaf.value]
        return self.value(leaf, what)

    def templates(self, given: dict[str, Leaf], key: str, where: str) -> Any:
        if key not in given:
            return {}
        what = f"{where}.{key}"
        return {
            name: self.tree(leaf, f"{what}.{name}")
            for name, leaf in self.mapping(given[key], what).items()
        }

    def moment(self, given: dict[str, Leaf], key: str, where: str) -> Any:
        """Seconds, or a template that makes them."""
        if key not in given:
            return None
        leaf, what = given[key], f"{where}.{key}"
        found = self.value(leaf, what)
        return found if isinstance(found, template.Template) else self.seconds(leaf, what)

    def seconds(self, leaf: Leaf, what: str) -> float:
        value = leaf.value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value <= MAX_SECONDS:
            self.refuse(leaf, f"{what} must be a number of seconds above 0, not {leaf.said()}")
        return float(value)

    def count(self, leaf: Leaf, what: str) -> int:
        value = leaf.value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            self.refuse(leaf, f"{what} must be a whole number above 0, not {leaf.said()}")
        return value

    def word(self, given: dict[str, Leaf], key: str, where: str) -> str | None:
        if key not in given:
            return None
        name = self.text(given[key], f"{where}.{key}")
        if "{{" in name:
            self.refuse(given[key], f"{where}.{key} is a name, not a template")
        return name

    def text(self, leaf: Leaf, what: str) -> str:
        if not isinstance(leaf.value, str) or not leaf.value.strip():
            self.refuse(leaf, f"{what} must be a text, not {leaf.said()}")
        if not leaf.value.isprintable():
            self.refuse(leaf, f"{what} must be one line of printable text")
        return leaf.value

    def one_of(self, leaf: Leaf, what: str, words: Sequence[str]) -> str:
        if leaf.value not in words:
            self.refuse(leaf, f"{what} must be {either(words)}, not {leaf.said()}")
        return str(leaf.value)

    def mapping(self, leaf: Leaf, what: str, keys: Sequence[str] = ()) -> dict[str, Leaf]:
        if not isinstance(leaf.value, dict):
            self.refuse(leaf, f"{what} must be a mapping (key: value), not {leaf.said()}")
        for key, inner in leaf.value.items():
            if keys and key not in keys:
                self.refuse_key(inner, f"{what} has no key {key!r}{did_you_mean(key, keys)}")
        found: dict[str, Leaf] = leaf.value
        return found

    def refuse(self, leaf: Leaf, why: str) -> NoReturn:
        raise InvalidInput(f"{at(self._path, leaf.line, leaf.column)}: {why}")

    def refuse_key(self, leaf: Leaf, why: str) -> NoReturn:
        raise InvalidInput(f"{at(self._path, leaf.key_line, leaf.key_column)}: {why}")


def at(path: str, line: int, column: int) -> str:
    return f"{path or 'the machine'}, line {line}, column {column}"


def is_path(text: str) -> bool:
    """Whether this is a `module:function`."""
    module, colon, name = text.partition(":")
    return bool(colon) and all(part.isidentifier() for part in f"{module}.{name}".split("."))


def either(words: Sequence[str]) -> str:
    return " or ".join(words)


def _pairs(text: str) -> set[str]:
    return {text[at : at + 2] for at in range(len(text) - 1) if text[at] == "{"}
