"""Waiting for the file's lock, and being fair to those who wait for it too.

A worker that cannot write cannot send a heartbeat. So when the file was locked for long, nobody
judges by leases at once: whoever comes through after a long wait leaves a mark in the store, and
until that is FAIR_SECONDS old nobody is reaped. Whoever comes before the first of them finds that
nobody wrote for long, and waits as well.
"""

from __future__ import annotations

import os
import time

from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.sqlite.transaction import SqliteTransaction, WriteTransaction

BUSY_SECONDS = 30.0  # how long a transaction waits for the file before it gives up
LONG_SECONDS = 1.0  # a wait that may have made somebody miss a heartbeat
FAIR_SECONDS = 0.5  # how long those who waited get for it then

MARK = "INSERT OR REPLACE INTO meta VALUES ('fair_at', ?)"
FAIR_AT = "SELECT value FROM meta WHERE name = 'fair_at'"


class Patience:
    """SQLite's busy handler for one connection."""

    def __init__(self, log: str) -> None:
        self.was_long = False  # the last wait, until it is marked
        self._began = 0.0
        self._is_fair_at = runtime.monotonic() + FAIR_SECONDS if _is_silent(log) else 0.0

    def __call__(self, tries: int) -> bool:
        """Called by SQLite while the file is locked: transactions are short, so look again soon.
        The clock's last digits keep many waiters from looking in step."""
        now = runtime.monotonic()
        if tries == 0:
            self._began = now
        self.was_long = now - self._began > LONG_SECONDS
        pause = min(0.0002 * (tries + 1), 0.004)
        runtime.sleep(pause * (0.5 + time.monotonic_ns() % 1000 / 1000))
        return tries * 0.004 < BUSY_SECONDS

    def mark(self, tx: WriteTransaction, seconds: float = FAIR_SECONDS) -> None:
        tx.run(MARK, (tx.now + seconds,))
        self.was_long = False

    def is_fair(self, tx: SqliteTransaction) -> bool:
        """Whether leases may be judged now."""
        return runtime.monotonic() >= self._is_fair_at and tx.now >= (tx.run(FAIR_AT).get or 0.0)


def let_others_go_first() -> None:
    runtime.sleep(FAIR_SECONDS / 2)


def _is_silent(log: str) -> bool:
    """Whether others have the file open, and none of them wrote for long."""
    try:
        return runtime.time() - os.stat(log).st_mtime > LONG_SECONDS
    except OSError:
        return False
