"""Reads YAML into a tree that knows the line of everything in it, and refuses what we do not need.

YAML 1.2: `on` and `no` are texts. Aliases, tags, duplicate keys and deep nesting are refused, so
that a small file cannot become a large one in memory.
"""

from __future__ import annotations

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from sprat.errors import InvalidInput
from sprat.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

MAX_DEPTH = 50
TAG = "tag:yaml.org,2002:"
KINDS = ("str", "int", "float", "bool", "null", "timestamp", "map", "seq")


class Leaf(Record):
    """A value of the file: where it begins, and the line of its key."""

    value: Any  # a dict or list of leaves, or a plain value
    line: int
    key_line: int
    column: int = 1
    key_column: int = 1


def read(text: str, path: str) -> Leaf:
    """The tree of a text; `path` is what errors call it."""
    yaml = YAML(typ="safe", pure=True)
    try:
        node = yaml.compose(text)
        if node is None:
            return Leaf(value=None, line=1, key_line=1)
        return _Reader(path, yaml.constructor).leaf(node, 0, (1, 1))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(str(error.problem or error.context).split())
        _refuse(path, mark.line + 1 if mark else 1, f"this is not YAML: {what}")
    except YAMLError as error:
        raise InvalidInput(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise InvalidInput(f"{path} is nested too deeply: {MAX_DEPTH} levels at most") from None


class _Reader:
    def __init__(self, path: str, constructor: Any) -> None:
        self._path = path
        self._constructor = constructor
        self._seen: set[int] = set()

    def leaf(self, node: Node, depth: int, key: tuple[int, int]) -> Leaf:
        line = _line(node)
        if depth > MAX_DEPTH:
            _refuse(self._path, line, f"this is nested too deeply: {MAX_DEPTH} levels at most")
        if id(node) in self._seen or getattr(node, "anchor", None):
            _refuse(self._path, line, "anchors (&) and aliases (*) are not supported: write it out")
        self._seen.add(id(node))
        tag = str(node.tag)
        if tag.removeprefix(TAG) not in KINDS:
            _refuse(self._path, line, f"the tag {tag} is not supported")
        if isinstance(node, MappingNode):
            value: object = self._mapping(node, depth)
        elif isinstance(node, SequenceNode):
            value = [self.leaf(inner, depth + 1, _place(inner)) for inner in node.value]
        else:
            value = self._scalar(node)
        line, column = _place(node)
        return Leaf(value=value, line=line, key_line=key[0], column=column, key_column=key[1])

    def _mapping(self, node: MappingNode, depth: int) -> dict[str, Leaf]:
        found: dict[str, Leaf] = {}
        for key_node, inner in node.value:
            line = _line(key_node)
            key = self._key(key_node)
            if key in found:
                before = found[key].key_line
                _refuse(self._path, line, f"{key!r} is here twice, first in line {before}")
            found[key] = self.leaf(inner, depth + 1, _place(key_node))
        return found

    def _key(self, node: Node) -> str:
        if not isinstance(node, ScalarNode) or getattr(node, "anchor", None):
            _refuse(self._path, _line(node), "a key must be a plain text")
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
            _refuse(self._path, _line(node), f"{str(node.value)[:40]!r} is no {kind} we can read")
        return None if kind == "null" else str(node.value)


def _place(node: Node) -> tuple[int, int]:
    return int(node.start_mark.line) + 1, int(node.start_mark.column) + 1


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _refuse(path: str, line: int, why: str) -> NoReturn:
    raise InvalidInput(f"{path}, line {line}: {why}")
