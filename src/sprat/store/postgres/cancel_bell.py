"""Tells a worker that a claim was taken from it while its job runs: a descriptor to wait for.

All workers of a store listen on one channel: such calls are rare, and each is followed by one
question of each worker that has a job running. A call that is lost with the server is made up for
by the next heartbeat, which names the lost claims, too.
"""

from __future__ import annotations

import threading

import psycopg

from sprat.store.postgres.listener import ChannelListener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.postgres.connections import Sessions


class PostgresCancelSignal:
    def __init__(self, connections: Sessions) -> None:
        self._connections = connections
        self._listener = ChannelListener(connections.address, "cancel")
        self._lock = threading.Lock()

    def descriptor(self) -> int | None:
        """None behind a pooler, which lends no session to listen on, and without a server."""
        if self._connections.is_pooled:
            return None
        with self._lock:
            try:
                return self._listener.open()
            except psycopg.Error:
                self._listener.close()
                return None

    def silence(self) -> None:
        with self._lock:
            if self._listener.is_open:
                try:
                    self._listener.read()
                except psycopg.Error:  # the server went away: the next descriptor is another one
                    self._listener.close()

    def close(self) -> None:
        with self._lock:
            self._listener.close()
