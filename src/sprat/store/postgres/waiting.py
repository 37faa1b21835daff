"""Sleeping until there is something to do.

A waiter listens (LISTEN) on a connection of its own before it looks, so that no push in between is
missed, and notes in the pool that it listens: a push into a pool where nobody does need not notify
anybody. A call that says that there is work for anybody is followed by a claim, others by a look.
Whatever gets lost on the way is healed by the next look. Behind a pooler nobody can
listen, and the looks come more often.
"""

from __future__ import annotations

import select
import threading

import psycopg

from sprat.core.runtime import runtime
from sprat.store.postgres.listener import ChannelListener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.backend import WorkerRef
    from sprat.store.postgres.connections import Sessions

LOOK_AGAIN_SECONDS = 1.0  # a waiter looks this often even if nobody calls
LOOK_AGAIN_POOLED_SECONDS = 0.1
TELL_AGAIN_SECONDS = 10.0  # the pool remembers for 30 that somebody listens

LOOK = "SELECT has_work, leaves, pause FROM sprat.look($1, $2, $3::int)"
LISTENING = "SELECT sprat.listening($1), EXISTS (SELECT 1 FROM sprat.pool WHERE name = $1)"


def wait(
    connections: Sessions, ears: Listeners, pool: str, worker: WorkerRef | None, seconds: float
) -> bool:
    end = runtime.monotonic() + seconds
    worker_id, incarnation = worker or (None, None)
    with ears.lend() as ear:
        while True:
            ear.listen(pool)  # before looking: what comes after the look is heard
            has_work, leaves, pause = connections.call(LOOK, (pool, worker_id, incarnation))[0]
            left = end - runtime.monotonic()
            if leaves or (left <= 0 and not has_work):
                return False
            if has_work:
                return True
            left = min(left, ear.patience, ear.patience if pause is None else max(pause, 0.0))
            if ear.hears(pool, within=left):
                return True
            connections.write_notes()  # not sooner: the next job may come at any moment


class Listeners:
    """The listening connections of one store: one for each thread that waits."""

    def __init__(self, connections: Sessions) -> None:
        self._connections = connections
        self._free: list[ThreadListener] = []

    def lend(self) -> ThreadListener:
        try:
            return self._free.pop()
        except IndexError:
            return ThreadListener(self._connections, self._free)

    def close(self) -> None:
        while self._free:
            self._free.pop().close()


class ThreadListener:
    def __init__(self, connections: Sessions, free: list[ThreadListener]) -> None:
        self._connections = connections
        self._free = free
        self._listener = ChannelListener(connections.address, "bell")
        self._told: dict[str, float] = {}  # pools that know of us, until when
        self.patience = LOOK_AGAIN_SECONDS

    def __enter__(self) -> ThreadListener:
        return self

    def __exit__(self, *about: object) -> None:
        self._free.append(self)

    def listen(self, pool: str) -> None:
        """From here on no call is missed. Look for work after this, then `wait`."""
        if self._connections.is_pooled:
            self.patience = LOOK_AGAIN_POOLED_SECONDS
            return
        self.patience = LOOK_AGAIN_SECONDS
        try:
            self._listener.open()
            self._listener.read()
        except psycopg.Error:  # the look says what is wrong, or finds the server there again
            self.close()
        if runtime.monotonic() > self._told.get(pool, 0.0):
            _, is_noted = self._connections.call(LISTENING, (pool,))[0]
            if is_noted:  # a pool that does not exist yet has no place for it: its first push calls
                self._told[pool] = runtime.monotonic() + TELL_AGAIN_SECONDS

    def hears(self, pool: str, *, within: float) -> bool:
        """Sleep until somebody calls or the time is up; whether it was called that work for
        anybody is there: then there is no need to look."""
        if not self._listener.is_open:
            threading.Event().wait(within)
            return False
        poll = select.poll()
        poll.register(self._listener.open(), select.POLLIN)
        if not poll.poll(max(0.0, within) * 1000):
            return False
        try:
            return f"{pool} ready".encode() in self._listener.read()
        except psycopg.Error:  # the look says what is wrong, or finds the server there again
            self.close()
            return False

    def close(self) -> None:
        self._listener.close()
