"""Waiting for the file's lock, and being fair to those who wait for it too.

A worker that cannot write cannot send a heartbeat. So whoever had to wait for long, or finds that
nobody wrote for long, must not judge by leases at once: it lets the others go first.
"""

from __future__ import annotations

import os
import time

BUSY_SECONDS = 30.0  # how long a transaction waits for the file before it gives up
LONG_SECONDS = 1.0  # a wait that may have made somebody miss a heartbeat
FAIR_SECONDS = 0.5  # how long those who waited get for it then


class Patience:
    """SQLite's busy handler for one connection."""

    def __init__(self, log: str) -> None:
        self._began = 0.0
        self._is_fair_at = time.monotonic() + FAIR_SECONDS if _is_silent(log) else 0.0

    def __call__(self, tries: int) -> bool:
        """Called by SQLite while the file is locked: transactions are short, so look again soon.
        The clock's last digits keep many waiters from looking in step."""
        now = time.monotonic()
        if tries == 0:
            self._began = now
        elif now - self._began > LONG_SECONDS:
            self._is_fair_at = now + FAIR_SECONDS
        pause = min(0.0002 * (tries + 1), 0.004)
        time.sleep(pause * (0.5 + time.monotonic_ns() % 1000 / 1000))
        return tries * 0.004 < BUSY_SECONDS

    def is_fair(self) -> bool:
        """Whether leases may be judged now."""
        return time.monotonic() >= self._is_fair_at

    def let_others_go_first(self) -> None:
        time.sleep(max(0.0, self._is_fair_at - time.monotonic()))


def _is_silent(log: str) -> bool:
    """Whether others have the file open, and none of them wrote for long."""
    try:
        return time.time() - os.stat(log).st_mtime > LONG_SECONDS
    except OSError:
        return False
