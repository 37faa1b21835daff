"""One store: pools of items and a registry of workers, over the verbs of a backend."""

from __future__ import annotations

import sys

from sprat.core import extensions, model
from sprat.core.errors import InvalidInput
from sprat.core.runtime import runtime
from sprat.store import claim_tokens, default_tenant_limit
from sprat.store.pool import WorkPool
from sprat.store.workers import Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from sprat.store.backend import Backend

LOCAL = ("sqlite:", "memory:")  # asking costs next to nothing
SETTINGS_SECONDS = 0.2


class Store:
    """A store behind a URL. Safe to share between threads, and after a fork."""

    def __init__(self, backend: Backend, url: str = "") -> None:
        self.backend = backend
        self.url = url  # as another process on this machine can open it
        self.workers = Workers(backend)
        self._tokens = claim_tokens.of_store(backend, url)
        self._settings: dict[str, tuple[model.PoolSettings, float]] = {}  # until when they hold

    def pool(self, name: str) -> WorkPool:
        """The pool of this name; it comes into being with its first item or setting."""
        return WorkPool(
            self.backend,
            name,
            before_push=self._before_push,
            after_push=self._after_push,
            after_configure=self._after_configure,
            tokens=self._tokens,
        )

    def _before_push(self, pool: str, items: Sequence[model.NewItem]) -> None:
        """Over HTTP the environment of the server counts."""
        if not self.url.startswith("http"):
            default_tenant_limit.before_push(self.backend, pool, items)

    def _after_push(self, pool: str) -> None:
        """Workers appear where work does. Who pushes to an orchestrator is elsewhere: it, or a
        controller, sees to that."""
        if not self.url.startswith("http"):
            self.added(pool)

    def added(self, pool: str) -> None:
        """Work became ready in a pool: fire its triggers, and start a pass if it wants one."""
        settings = self._recent_settings(pool)
        self.happened(model.WORK_ADDED, pool, settings)
        if self.url.startswith("memory:") or not settings.start_on_push:
            return
        extensions.load("event", "work_added")(self, pool, settings)

    def _recent_settings(self, pool: str) -> model.PoolSettings:
        """A server is not asked before each of a thousand pushes: a change of the settings by
        somebody else is noticed a moment later."""
        settings, until = self._settings.get(pool, (None, 0.0))
        if settings is None or runtime.monotonic() > until:
            settings = self.backend.pool_state(pool).settings
            if not self.url.startswith(LOCAL):
                self._settings[pool] = settings, runtime.monotonic() + SETTINGS_SECONDS
        return settings

    def _after_configure(self, pool: str) -> None:
        self._settings.pop(pool, None)

    def happened(self, event: str, pool: str, settings: model.PoolSettings) -> None:
        """Fire the triggers that wait for this event; nothing is asked where there are none."""
        if settings.events.get(event):
            extensions.load("event", "happened")(self, event, pool, settings)

    def lost_workers(self, pool: str, settings: model.PoolSettings) -> None:
        """Workers of the pool were marked as lost: fire the triggers that wait for that."""
        self.happened(model.WORKER_LOST, pool, settings)
        self.happened(model.POOL_EMPTY, pool, settings)  # if that was the last attempt

    def pools(self) -> list[str]:
        return self.backend.pools()

    def get(self, item_id: str) -> model.WorkItem:
        """One item by its id, whatever its pool."""
        if not isinstance(item_id, str):
            raise InvalidInput(f"an item id is a string, not {type(item_id).__name__}")
        return self.backend.item(item_id)

    def purge(self) -> int:
        """Delete what is past its retention, in every pool."""
        return sum(self.pool(name).purge() for name in self.pools())

    def delete_pool(self, name: str) -> bool:
        """Delete a pool with its settings, finished jobs, statistics and decisions; False when
        there is no such pool. Raises `PoolInUse` while it has unfinished jobs or live workers.

        A push at the same time keeps the pool, or makes it anew: its job is never deleted.

            store.delete_pool("papers")
        """
        from sprat.store import pool_deletion

        deleted = pool_deletion.delete(self.backend, self.pool(name).name)
        self._settings.pop(name, None)
        return deleted

    def compact(self) -> tuple[int, int] | None:
        """Return the disk space of deleted items to the system: the bytes before and after, or None
        where the server does that by itself (PostgreSQL, Redis). SQLite writes the whole file anew;
        meanwhile other processes wait to write."""
        return self.backend.compact()

    def describe(self) -> dict[str, object]:
        return self.backend.describe()

    def close(self) -> None:
        triggers = sys.modules.get("sprat.triggers.events")  # only if one may run here
        if triggers is not None:
            triggers.finish(self)
        self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
