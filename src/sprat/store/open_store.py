"""Opens a store by its URL."""

from __future__ import annotations

import os

from sprat.core.errors import InvalidInput, MissingExtra
from sprat.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

SCHEMES = ("sqlite", "postgresql", "redis", "http", "https", "memory")


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
        from sprat.store.memory.backend import MemoryBackend

        if rest.strip("/"):
            raise InvalidInput(f"{url!r}: a memory store has no name, write memory://")
        return Store(MemoryBackend(), url)
    if scheme in ("postgresql", "postgres"):
        return _open_postgres(url)
    if is_redis:
        from sprat.store.redis.backend import RedisBackend

        return Store(RedisBackend(url, connect=connect, password=password), url)
    if scheme in ("http", "https"):
        from sprat.store.http.address import read
        from sprat.store.http.backend import HttpBackend

        return Store(HttpBackend(read(url)), url)
    raise InvalidInput(f"unknown kind of store {scheme!r} in the URL: use {' or '.join(SCHEMES)}")


def preload(url: str) -> None:
    """Import what the store at this URL needs, and open nothing: for a process that forks."""
    if url.startswith("sqlite:"):
        from sprat.store.sqlite import backend as sqlite
        from sprat.store.sqlite import waiting  # noqa: F401

        sqlite.SqliteBackend.preload()
    elif url.startswith("postgres"):
        from sprat.store.postgres import backend as postgres

        postgres.PostgresBackend.preload()
    elif url.startswith(("redis", "valkey")):
        import sprat.store.redis.backend  # noqa: F401


def _open_sqlite(url: str, rest: str) -> Store:
    from sprat.store.sqlite.backend import SqliteBackend

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
        from sprat.store.postgres.backend import PostgresBackend
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "psycopg":
            raise
        raise MissingExtra("psycopg is not installed: pip install 'sprat[postgres]'") from None
    return Store(PostgresBackend(url), url)
