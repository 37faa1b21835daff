"""Which store tasks push to: the one that `use` names, else SPRAT_URL, else sprat.db here.

Stores are opened at the first push and kept: one for each URL and process.
"""

from __future__ import annotations

import os
from contextvars import ContextVar

from sprat import settings
from sprat.errors import InvalidInput
from sprat.store import Store, open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextvars import Token
    from typing import Any, Protocol

    from sprat.model import NewItem, WorkItem

    class Pushes(Protocol):
        """The part of a task that a place has to know."""

        pool_name: str

        def settings(self) -> Mapping[str, Any]: ...
        def run_item(self, item: WorkItem) -> Any: ...


DEFAULT_URL = "sqlite:///sprat.db"


class Place:
    """A store, and which task each of its pools belongs to, as far as this process knows."""

    has_workers = True  # so that waiting makes sense

    def __init__(self, store: Store) -> None:
        self.store = store
        self._handlers: dict[str, object] = {}

    def adopt(self, task: Pushes) -> None:
        """Before a task's first push: the pool gets its settings, if it has others."""
        wanted = task.settings()
        handler = wanted["handler"]
        known = self._handlers.get(task.pool_name)
        if known == handler:
            return
        if known is not None:
            raise InvalidInput(
                f"pool {task.pool_name!r} is that of {known}: give {handler} a pool of its own"
            )
        pool = self.store.pool(task.pool_name)
        now = pool.state().settings
        if _text(settings.changed(now, wanted)) != _text(now):
            pool.configure(**wanted)
        self._handlers[task.pool_name] = handler

    def pushed(self, items: Sequence[NewItem]) -> None:
        """After a push: nothing more to do, workers see to it."""

    def look(self, item_id: str) -> WorkItem:
        """The item, for somebody who waits for its result."""
        return self.store.get(item_id)


def _text(stored: object) -> str:
    """Settings as the store keeps them: a list and a tuple are the same there."""
    import json

    return json.dumps(stored)


class use:  # noqa: N801  (used as a statement: `with sprat.use(url):`)
    """`with sprat.use("sqlite:///other.db"):` tasks pushed inside go to that store, and results
    are read from it. Takes a URL or an open Store; goes for this thread (or asyncio task)."""

    def __init__(self, store: str | Store) -> None:
        self._place = place(store)

    def __enter__(self) -> Store:
        self._before: Token[Place | None] = _used.set(self._place)
        return self._place.store

    def __exit__(self, *_: object) -> None:
        _used.reset(self._before)


_used: ContextVar[Place | None] = ContextVar("sprat.use", default=None)
everywhere: list[Place] = []  # for all threads, whatever `use` says: see inlining.py
_places: dict[tuple[str, str], Place] = {}  # by URL and working directory


def place(store: str | Store | None = None) -> Place:
    """The place of this store; of the one in use when none is named."""
    if everywhere:
        return everywhere[-1]
    if store is None:
        used = _used.get()
        if used is not None:
            return used
        store = os.environ.get("SPRAT_URL") or DEFAULT_URL
    if isinstance(store, Store):
        return Place(store)
    key = (store, os.getcwd())  # a file may be named relative to it
    if key not in _places:
        _places.setdefault(key, Place(open_store(store)))
    return _places[key]
