"""Pages of items and documents, bounded in bytes as well as in number.

An entry may have megabytes. So a page is read from the store a few entries at a time, each becomes
JSON text at once, and the page ends before it is larger than MAX_PAGE_BYTES, or with one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from sprat.core import model
from sprat.core.errors import UnknownItem
from sprat.store.backend import Backend

MAX_PAGE_BYTES = 8 << 20
STEP = 16  # entries that are read at a time

# Up to this many entries after a cursor, and the cursor that goes on; None: that was all.
Read = Callable[[int, str | None], tuple[Sequence[Any], str | None]]
Texts = tuple[list[bytes], str | None]


def page(
    read: Read, limit: int, after: str | None, show: Callable[[Any], Any], *, cursor: str = "id"
) -> Texts:
    """A page as JSON texts, and where the next one begins (None: there is none). The field `cursor`
    of an entry names its place. Blocks."""
    texts: list[bytes] = []
    size = 0
    while True:
        most = min(STEP, limit - len(texts))
        try:
            found, following = read(most, after)
        except UnknownItem:
            if texts:  # the last one was just purged: the next page finds out
                return texts, after
            raise
        for entry in found:
            text = msgspec.json.encode(show(entry))
            if texts and size + len(text) > MAX_PAGE_BYTES:
                return texts, after
            texts.append(text)
            size += len(text)
            after = getattr(entry, cursor)
        if following is None or len(found) < most or len(texts) == limit:
            return texts, following
        after = following


def items(backend: Backend, pool: str, status: str | None) -> Read:
    def read(most: int, after: str | None) -> tuple[Sequence[Any], str | None]:
        found = backend.items(pool, status, most + 1, after)
        return found[:most], found[most - 1].id if len(found) > most else None

    return read


def finds(backend: Backend, pool: str, which: model.ItemFilter) -> Read:
    def read(most: int, after: str | None) -> tuple[Sequence[Any], str | None]:
        step = backend.find(pool, which, most, after)
        return step.items, step.after

    return read


def documents(backend: Backend, kind: str) -> Read:
    def read(most: int, after: str | None) -> tuple[Sequence[Any], str | None]:
        found = backend.documents(kind, most + 1, after)
        return found[:most], found[most - 1].name if len(found) > most else None

    return read


def ids(read: Read, limit: int, after: str | None) -> tuple[tuple[str, ...], str | None]:
    """The ids of up to `limit` items, and where to go on. Blocks."""
    found: list[str] = []
    while True:
        most = min(STEP, limit - len(found))
        entries, after = read(most, after)
        found += [entry.id for entry in entries]
        if after is None or len(entries) < most or len(found) == limit:
            return tuple(found), after


def listed(texts: list[bytes]) -> bytes:
    return b"[" + b",".join(texts) + b"]"
