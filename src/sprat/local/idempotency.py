"""Jobs that must run once: of all threads that begin the same job, one may.

It knows only what happened in this process. Across processes, push with a key: the store then keeps
one item for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from sprat.core.errors import InvalidInput

TTL_SECONDS = 3600.0
MAX_ENTRIES = 100_000  # some 20 MB of ids


class IdempotencyTracker:
    """Remembers job ids for a while. When there are too many, the oldest is forgotten early."""

    def __init__(
        self,
        ttl_seconds: float = TTL_SECONDS,
        max_entries: int = MAX_ENTRIES,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not ttl_seconds > 0:
            raise InvalidInput(f"ttl_seconds must be more than 0, not {ttl_seconds!r}")
        if max_entries < 1:
            raise InvalidInput(f"max_entries must be 1 or more, not {max_entries!r}")
        self._ttl = ttl_seconds
        self._most = max_entries
        self._clock = clock
        self._lock = Lock()
        self._ends: dict[str, float] = {}  # in the order of their ends: all live equally long

    def begin(self, job_id: str) -> bool:
        """Whether the caller is the one to do this job: True once until it expires."""
        with self._lock:
            now = self._sweep()
            if job_id in self._ends:
                return False
            if len(self._ends) >= self._most:
                del self._ends[next(iter(self._ends))]
            self._ends[job_id] = now + self._ttl
            return True

    def forget(self, job_id: str) -> bool:
        """Let another thread begin it, because it failed; whether it was known."""
        with self._lock:
            self._sweep()
            return self._ends.pop(job_id, None) is not None

    def __contains__(self, job_id: str) -> bool:
        with self._lock:
            self._sweep()
            return job_id in self._ends

    def __len__(self) -> int:
        with self._lock:
            self._sweep()
            return len(self._ends)

    def _sweep(self) -> float:
        now = self._clock()
        while self._ends:
            first = next(iter(self._ends))
            if self._ends[first] > now:
                break
            del self._ends[first]
        return now
