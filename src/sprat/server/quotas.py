"""What one tenant may have of a server: fixed numbers, listed in docs/operate/server.md.

The operator, whose keys have no tenant, is not bound by them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sprat.core.errors import InvalidInput
from sprat.server.http_error import HttpError
from sprat.store.backend import Backend

MAX_WATCHERS = 32  # pools with a thread that watches them for waiting workers
MAX_POOLS = 1000
MAX_ENDPOINTS = 500  # workers that the health monitor asks
LOOK_SECONDS = 1.0  # between two looks for a pool that was not there


class KnownPools:
    """Which pools the store has, as of the last look. A pool stays once it is there. Blocks."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._names: frozenset[str] = frozenset()
        self._look_at = 0.0

    def knows(self, pool: str) -> bool:
        """As `has`, without a look: does not block."""
        return pool in self._names

    def has(self, pool: str) -> bool:
        if pool not in self._names and time.monotonic() >= self._look_at:
            self._look()
        return pool in self._names

    def must_accept(self, front: str, pool: str) -> None:
        """Refuse one more pool to a tenant that has as many as it may have. The names of its pools
        begin with `front`. Requests at the same moment may each add one."""
        if pool in self._names:
            return
        self._look()
        if pool in self._names:
            return
        if sum(name.startswith(front) for name in self._names) >= MAX_POOLS:
            raise InvalidInput(
                f"a tenant has at most {MAX_POOLS:,} pools: use one that exists, or ask the "
                f"server's operator"
            )

    def _look(self) -> None:
        self._look_at = time.monotonic() + LOOK_SECONDS
        self._names = frozenset(self._backend.pools())


class UnderWay:
    """The requests of each tenant that are not answered yet: most of them wait for work, and each
    has a connection. On the event loop."""

    def __init__(self, max_connections: int) -> None:
        self._most = share(max_connections)
        self._of: dict[str, int] = {}

    @contextmanager
    def one(self, tenant: str | None) -> Iterator[None]:
        """One more of this tenant while the block lasts, or an HttpError."""
        if tenant is None:
            yield
            return
        number = self._of.get(tenant, 0)
        if number >= self._most:
            raise HttpError(
                429,
                "too_many",
                f"this tenant has {number:,} requests under way, as many as it may have",
                retry_after=1.0,
            )
        self._of[tenant] = number + 1
        try:
            yield
        finally:
            self._of[tenant] -= 1
            if not self._of[tenant]:
                del self._of[tenant]


def share(whole: int) -> int:
    """The part of what all requests use that one tenant may use at a time: half of it."""
    return max(1, whole // 2)
