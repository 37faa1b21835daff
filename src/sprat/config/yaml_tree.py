"""Reads YAML into a tree that knows the place of everything in it, and refuses what we do not need.

YAML 1.2: `on` and `no` are texts. Aliases, tags, duplicate keys and deep nesting are refused, so
that a small file cannot become a large one in memory.
"""

from __future__ import annotations

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from sprat.core.errors import InvalidInput
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

MAX_DEPTH = 50
MAX_SAID = 60  # characters of a value that are repeated
TAG = "tag:yaml.org,2002:"
KINDS = ("str", "int", "float", "bool", "null", "timestamp", "map", "seq")


class Leaf(Record):
    """A value of a file: where it begins, and where its key does. Both count from 1."""

    value: Any  # a dict or list of leaves, or a plain value
    line: int
    key_line: int
    column: int = 1
    key_column: int = 1
    inset: int | None = None  # letters before a text on one line: its quote; None: many lines
    path: str = ""
    is_exact: bool = False  # a refusal names the column too

    def plain(self) -> Any:
        """The value, without places."""
        if isinstance(self.value, dict):
            return {key: inner.plain() for key, inner in self.value.items()}
        if isinstance(self.value, list):
            return [inner.plain() for inner in self.value]
        return self.value

    def said(self) -> str:
        """What a sentence calls the value."""
        kinds = {dict: "a mapping", list: "a list", type(None): "nothing"}
        return kinds.get(type(self.value)) or repr(self.value)[:MAX_SAID]

    def mapping(self, what: str) -> dict[str, Leaf]:
        """The entries of a mapping; an empty value has none."""
        if self.value is not None and not isinstance(self.value, dict):
            self.refuse(f"{what} must be a mapping (key: value), not {self.said()}")
        return self.value or {}

    def checked(self, check: Callable[..., Any], *arguments: object) -> Any:
        """What the check returns; what it refuses gets the line of the value."""
        try:
            return check(*arguments)
        except InvalidInput as error:
            self.refuse(str(error))

    def refuse(self, why: str) -> NoReturn:
        column = f", column {self.column}" if self.is_exact else ""
        raise InvalidInput(f"{self.path}, line {self.line}{column}: {why}")

    @property
    def key(self) -> Leaf:
        """The place of its key: `leaf.key.refuse(...)`."""
        return self.replace(line=self.key_line, column=self.key_column)

    @property
    def exact(self) -> Leaf:
        """The same leaf, whose refusals name the column too."""
        return self.replace(is_exact=True)


def read(text: str, path: str) -> Leaf:
    """The tree of a text; `path` is what errors call it."""
    yaml = YAML(typ="safe", pure=True)
    try:
        node = yaml.compose(text)
        if node is None:
            return Leaf(value=None, line=1, key_line=1, path=path)
        return _Reader(path, yaml.constructor).leaf(node, 0, (1, 1))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(str(error.problem or error.context).split())
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        _refuse(path, place, f"this is not YAML: {what}")
    except ReaderError as error:
        place = _place_of(text, int(error.position))
        _refuse(path, place, f"this is not YAML: {error.reason}")
    except YAMLError as error:
        _refuse(path, (1, 1), f"this is not YAML: {' '.join(str(error).split())}")
    except RecursionError:
        _refuse(path, _deepest(text), f"this is nested too deeply: {MAX_DEPTH} levels at most")


class _Reader:
    def __init__(self, path: str, constructor: Any) -> None:
        self._path = path
        self._constructor = constructor
        self._seen: set[int] = set()

    def leaf(self, node: Node, depth: int, key: tuple[int, int]) -> Leaf:
        place = _place(node)
        if depth > MAX_DEPTH:
            _refuse(self._path, place, f"this is nested too deeply: {MAX_DEPTH} levels at most")
        if id(node) in self._seen or getattr(node, "anchor", None):
            why = "anchors (&) and aliases (*) are not supported: write it out"
            _refuse(self._path, place, why)
        self._seen.add(id(node))
        tag = str(node.tag)
        if tag.removeprefix(TAG) not in KINDS:
            _refuse(self._path, place, f"the tag {tag} is not supported")
        if isinstance(node, MappingNode):
            value: object = self._mapping(node, depth)
        elif isinstance(node, SequenceNode):
            value = [self.leaf(inner, depth + 1, _place(inner)) for inner in node.value]
        else:
            value = self._scalar(node)
        (line, column), (key_line, key_column) = place, key
        return Leaf.of((value, line, key_line, column, key_column, _inset(node), self._path, False))

    def _mapping(self, node: MappingNode, depth: int) -> dict[str, Leaf]:
        found: dict[str, Leaf] = {}
        for key_node, inner in node.value:
            place = _place(key_node)
            key = self._key(key_node)
            if key in found:
                before = found[key].key_line
                _refuse(self._path, place, f"{key!r} is here twice, first in line {before}")
            found[key] = self.leaf(inner, depth + 1, place)
        return found

    def _key(self, node: Node) -> str:
        if not isinstance(node, ScalarNode) or getattr(node, "anchor", None):
            _refuse(self._path, _place(node), "a key must be a plain text")
        return str(node.value)

    def _scalar(self, node: Node) -> object:
        kind = str(node.tag).removeprefix(TAG)
        try:
            if kind == "int":
                return self._constructor.construct_yaml_int(node)
            if kind == "float":
                return self._constructor.construct_yaml_float(node)
            if kind == "bool":
                return self._constructor.construct_yaml_bool(node)
        except (ValueError, KeyError):
            _refuse(self._path, _place(node), f"{str(node.value)[:40]!r} is no {kind} we can read")
        return None if kind == "null" else str(node.value)


def _inset(node: Node) -> int | None:
    if not isinstance(node, ScalarNode) or node.style in ("|", ">"):
        return None
    if node.start_mark.line != node.end_mark.line:
        return None
    return 1 if node.style else 0


def _place_of(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, position - before.rfind("\n")


def _deepest(text: str) -> tuple[int, int]:
    """Where the first level begins that is one too many. Unlike the tree, events need no stack."""
    depth = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH:
            return int(event.start_mark.line) + 1, int(event.start_mark.column) + 1
    return 1, 1


def _place(node: Node) -> tuple[int, int]:
    return int(node.start_mark.line) + 1, int(node.start_mark.column) + 1


def _refuse(path: str, place: tuple[int, int], why: str) -> NoReturn:
    raise InvalidInput(f"{path}, line {place[0]}, column {place[1]}: {why}")
