"""Writes YAML the way people write manifests. Any reader of YAML 1.1 or 1.2 reads the same from it:
what could be mistaken for something else (`yes`, `1e3`, `0x1`) is in quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

PLAIN = re.compile(
    r"[A-Za-z/]([A-Za-z0-9_./:@=-]*[A-Za-z0-9_/-])?|--[a-z]([a-z-]*[a-z])?|[0-9]+(m|Ki|Mi|Gi)"
)
WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
BLOCK = re.compile(r"[\x20-\x7e\n]*\n")  # can be shown line by line


def document(value: Mapping[str, Any]) -> str:
    return "".join(f"{line}\n" for line in _mapping(value))


def documents(values: Sequence[Mapping[str, Any]]) -> str:
    return "---\n".join(map(document, values))


def _mapping(value: Mapping[str, Any]) -> Iterator[str]:
    for key, inner in value.items():
        front = f"{_scalar(key)}:"
        if isinstance(inner, dict) and inner:
            yield front
            yield from _indented(_mapping(inner))
        elif isinstance(inner, list) and inner:
            yield front
            yield from _sequence(inner)
        elif isinstance(inner, str) and _is_block(inner):
            yield f"{front} |"
            yield from _indented(inner[:-1].split("\n"))
        else:
            yield f"{front} {_scalar(inner)}"


def _sequence(value: Sequence[Any]) -> Iterator[str]:
    for inner in value:
        if isinstance(inner, dict) and inner:
            first, *rest = _mapping(inner)
        elif isinstance(inner, list) and inner:
            first, *rest = _sequence(inner)
        else:
            first, *rest = [_scalar(inner)]
        yield f"- {first}"
        yield from _indented(rest)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {line}" if line else ""


def _scalar(value: Any) -> str:
    """A text as it is, or else as JSON, which is YAML but for characters that are not shown."""
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in WORDS:
        return value
    said = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in said)


def _is_block(text: str) -> bool:
    """Whether a text of several lines can be a block: it begins and ends with a line."""
    return (
        text.count("\n") > 1
        and not text.startswith((" ", "\n"))
        and not text.endswith("\n\n")
        and BLOCK.fullmatch(text) is not None
    )
