"""Which store tasks push to: the one that `use` names, else SPRAT_URL, else sprat.db here.

Stores are opened at the first push and kept: one for each URL and process.
"""

from __future__ import annotations

import os
from contextvars import ContextVar

from sprat.core.errors import InvalidInput
from sprat.core.runtime import runtime
from sprat.store.open_store import open_store
from sprat.store.store import Store
from sprat.tasks import ownership

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextvars import Token
    from typing import Any, Protocol

    from sprat.core.model import NewItem, WorkItem
    from sprat.store.pool import WorkPool
    from sprat.tasks.ownership import Program

    class Pushes(Protocol):
        """The part of a task that a place has to know."""

        pool_name: str

        @property
        def name(self) -> str: ...
        def program(self) -> Program: ...
        def settings(self) -> Mapping[str, Any]: ...
        def run_item(self, item: WorkItem) -> Any: ...


DEFAULT_URL = "sqlite:///sprat.db"
ADOPTED_SECONDS = 0.2  # a task's pool is looked at again after this


class DefaultStore:
    """A store, and the tasks that this process pushed to its pools."""

    has_workers = True  # so that waiting makes sense

    def __init__(self, store: Store) -> None:
        self.store = store
        # By pool and name: the task, its handler, and until when that need not be checked again.
        self._adopted: dict[tuple[str, str], tuple[Pushes, str, float]] = {}

    def adopt(self, task: Pushes) -> None:
        """Before a push: the pool's settings let its workers run the task. Checked at the first
        push, and again from time to time: another program may have moved the pool."""
        key = task.pool_name, task.name
        owner, handler, until = self._adopted.get(key, (task, "", 0.0))
        if owner is task and until > runtime.monotonic():
            return
        program = task.program()
        if handler not in ("", program.handler):
            raise InvalidInput(
                f"task {task.name} of pool {task.pool_name!r} is {handler}: give "
                f"{program.handler} a name of its own with @sprat.task(name=...)"
            )
        while not self._settle_in(self.store.pool(task.pool_name), program, task.settings()):
            pass  # another process changed the settings in between
        self._adopted[key] = task, program.handler, runtime.monotonic() + ADOPTED_SECONDS

    def _settle_in(self, pool: WorkPool, program: Program, wanted: Mapping[str, Any]) -> bool:
        from sprat.config import settings

        state = pool.state()
        now = state.settings
        if not ownership.is_other(now, program):
            changes = {**wanted, **ownership.adopted(now, program)}
        elif _is_empty(pool):
            changes = {**wanted, **ownership.moved(program)}
        else:
            raise InvalidInput(ownership.refusal(pool.name, now, program))
        if _text(settings.changed(now, changes)) == _text(now):
            return True
        return pool.configure(if_version=state.version, **changes)

    def pushed(self, items: Sequence[NewItem]) -> None:
        """After a push: nothing more to do, workers see to it."""

    def look(self, item_id: str) -> WorkItem:
        """The item, for a caller that waits for its result."""
        return self.store.get(item_id)


def _is_empty(pool: WorkPool) -> bool:
    counts = pool.counts()
    return not (counts.pending or counts.claimed or counts.backlog)


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
        self._before: Token[DefaultStore | None] = _used.set(self._place)
        return self._place.store

    def __exit__(self, *_: object) -> None:
        _used.reset(self._before)


_used: ContextVar[DefaultStore | None] = ContextVar("sprat.use", default=None)
everywhere: list[DefaultStore] = []  # for all threads, whatever `use` says: see inline.py
_places: dict[tuple[str, str], DefaultStore] = {}  # by URL and working directory


def place(store: str | Store | None = None) -> DefaultStore:
    """The place of this store; of the one in use when none is named."""
    if everywhere:
        return everywhere[-1]
    if store is None:
        used = _used.get()
        if used is not None:
            return used
        store = os.environ.get("SPRAT_URL") or DEFAULT_URL
    if isinstance(store, Store):
        return DefaultStore(store)
    key = (store, os.getcwd())  # a file may be named relative to it
    if key not in _places:
        _places.setdefault(key, DefaultStore(open_store(store)))
    return _places[key]
