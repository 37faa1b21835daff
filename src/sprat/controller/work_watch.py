"""A watch: rings when work comes into a pool that had none, so that nobody polls for that.

The store's own `wait` sleeps, so a watch costs next to nothing. It is asked for by who has nothing
to do, and rings once; where there is work already, the wait would return at once and prove nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from sprat.core.errors import InvalidInput, SpratError
from sprat.store.open_store import open_store

ONE_WAIT_SECONDS = 20.0
AFTER_AN_ERROR_SECONDS = 5.0


class WorkWatch:
    """Sleeps in a thread that ends with the process, over a store of its own: that may be in the
    middle of a wait when all else is closed."""

    def __init__(self, url: str, pool: str, ring: Callable[[], None]) -> None:
        self._url = url
        self._pool = pool
        self._ring = ring
        self._is_wanted = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {pool}", daemon=True)

    def begin(self) -> None:
        """Ring when there is work."""
        if self._thread.ident is None:
            self._thread.start()
        self._is_wanted.set()

    def rest(self) -> None:
        """Do not ring until told so."""
        self._is_wanted.clear()

    def close(self) -> None:
        self._is_over.set()
        self._is_wanted.set()

    def _run(self) -> None:
        pool = open_store(self._url).pool(self._pool)
        while self._is_wanted.wait() and not self._is_over.is_set():
            try:
                has_work = pool.wait(None, seconds=ONE_WAIT_SECONDS)
            except InvalidInput:
                return  # this key may not wait: then there is only the poll interval
            except SpratError:
                self._is_over.wait(AFTER_AN_ERROR_SECONDS)
                continue
            if has_work and self._is_wanted.is_set():
                self._is_wanted.clear()
                self._ring()
