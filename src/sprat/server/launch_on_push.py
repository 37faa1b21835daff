"""With `--launch`, after work came in over HTTP: what `sprat push` does, beside the requests.

Workers appear on the server's machine, and triggers that wait for new work fire there. Not for a
pool that may be a tenant's (it has a dot in its name): whoever may write that pool's settings would
choose what is run here.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from sprat.core.errors import SpratError
from sprat.store.store import Store

log = logging.getLogger("sprat.server")


class Arrivals:
    """One thread that starts fleets; of a storm of pushes to a pool, one waits for it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: set[str] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sprat-arrivals")

    def came(self, pool: str) -> None:
        """Work became ready in this pool. Returns at once."""
        if "." in pool or pool in self._waiting:
            return
        self._waiting.add(pool)
        self._thread.submit(self._start, pool)

    def close(self) -> None:
        self._thread.shutdown()

    def _start(self, pool: str) -> None:
        self._waiting.discard(pool)  # first: whoever comes from here on needs another look
        try:
            self._store.added(pool)
        except (SpratError, OSError) as error:  # the work is stored: the next pass makes good
            log.warning("no workers were started for %s: %s", pool, error)
