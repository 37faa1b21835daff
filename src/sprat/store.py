"""One store: pools of items, a registry of workers, and `open_store` to get at them by URL."""

from __future__ import annotations

import os
import sys
import time

from sprat import claim_tokens, model, tenant_limit
from sprat.errors import InvalidInput, MissingExtra
from sprat.pool import WorkPool
from sprat.registry import Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from socket import socket
    from types import TracebackType
    from typing import Self

    from sprat.backend import Backend

SCHEMES = ("sqlite", "postgresql", "redis", "http", "https", "memory")
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
            tenant_limit.before_push(self.backend, pool, items)

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
        from sprat.triggers import work_added

        work_added(self, pool)

    def _recent_settings(self, pool: str) -> model.PoolSettings:
        """A server is not asked before each of a thousand pushes: a change of the settings by
        somebody else is noticed a moment later."""
        settings, until = self._settings.get(pool, (None, 0.0))
        if settings is None or time.monotonic() > until:
            settings = self.backend.pool_state(pool).settings
            if not self.url.startswith(LOCAL):
                self._settings[pool] = settings, time.monotonic() + SETTINGS_SECONDS
        return settings

    def _after_configure(self, pool: str) -> None:
        self._settings.pop(pool, None)

    def happened(self, event: str, pool: str, settings: model.PoolSettings) -> None:
        """Fire the triggers that wait for this event; nothing is asked where there are none."""
        if settings.events.get(event):
            from sprat import triggers

            triggers.happened(self, event, pool, settings)

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
        from sprat import pool_deletion

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
        triggers = sys.modules.get("sprat.triggers")  # only if one may run here
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


def open_store(
    url: str = "sqlite:///sprat.db",
    *,
    connect: Callable[[str, int], socket] | None = None,
    password: str | Callable[[], str] | None = None,
) -> Store:
    """Open `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://user@host/database`,
    `redis://host`, `https://orchestrator` (with the key in SPRAT_API_KEY) or `memory://`.

    For Redis, `connect(host, port)` returns a connected socket (a tunnel, a proxy), and `password`
    is a string, or a function that returns the password of the moment (a token that expires). Both
    are called for each new connection, and count in this process only.

        sprat.open_store("rediss://iam-user@cache.example.com", password=new_token)
    """
    if not isinstance(url, str):
        raise InvalidInput(f"a store URL is a string, not {type(url).__name__}")
    scheme, colon, rest = url.partition("://")
    is_redis = scheme.startswith(("redis", "valkey"))
    if not is_redis and (connect is not None or password is not None):
        raise InvalidInput("connect= and password= are for Redis: use redis:// or rediss://")
    if not colon:
        raise InvalidInput(
            f"{url!r} is not a store URL: for a file write sqlite:///{url or 'sprat.db'}"
        )
    if scheme == "sqlite":
        return _open_sqlite(url, rest)
    if scheme == "memory":
        from sprat.stores.memory import MemoryBackend

        if rest.strip("/"):
            raise InvalidInput(f"{url!r}: a memory store has no name, write memory://")
        return Store(MemoryBackend(), url)
    if scheme in ("postgresql", "postgres"):
        return _open_postgres(url)
    if is_redis:
        from sprat.stores.redis import RedisBackend

        return Store(RedisBackend(url, connect=connect, password=password), url)
    if scheme in ("http", "https"):
        from sprat.stores.http import HttpBackend
        from sprat.stores.http.address import read

        return Store(HttpBackend(read(url)), url)
    raise InvalidInput(f"unknown kind of store {scheme!r} in the URL: use {' or '.join(SCHEMES)}")


def preload(url: str) -> None:
    """Import what the store at this URL needs, and open nothing: for a process that forks."""
    if url.startswith("sqlite:"):
        from sprat.stores.sqlite import scaling, statistics, waiting  # noqa: F401
    elif url.startswith("postgres"):
        import sprat.stores.postgres
    elif url.startswith(("redis", "valkey")):
        import sprat.stores.redis.scaling  # noqa: F401


def _open_sqlite(url: str, rest: str) -> Store:
    from sprat.stores.sqlite import SqliteBackend

    place, _, query = rest.partition("?")
    path = place.removeprefix("/")
    if place and not place.startswith("/"):
        raise InvalidInput(f"{url!r} has too few slashes: write sqlite:///{place}")
    if not path or path == ":memory:":
        raise InvalidInput(f"{url!r} names no file: write sqlite:///fleet.db, or memory://")
    sync = "push"
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if name != "sync" or value not in ("push", "all"):
            raise InvalidInput(f"unknown option {option!r} in {url!r}: sync=push or sync=all")
        sync = value
    path = os.path.abspath(path)
    return Store(SqliteBackend(path, sync_all=sync == "all"), f"sqlite:///{path}?sync={sync}")


def _open_postgres(url: str) -> Store:
    try:
        from sprat.stores.postgres import PostgresBackend
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "psycopg":
            raise
        raise MissingExtra("psycopg is not installed: pip install 'sprat[postgres]'") from None
    return Store(PostgresBackend(url), url)
