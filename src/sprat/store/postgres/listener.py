"""A connection of its own that listens (LISTEN) on one channel of the store.

It does not cross a fork: a child leaves the one that it inherited alone, and opens its own. After
the server went away, `open` and `read` raise psycopg.Error, and the caller closes the listener.
"""

from __future__ import annotations

import os
import select

from sprat.store.postgres.connections import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import psycopg

    from sprat.store.postgres.address import PostgresAddress


class ChannelListener:
    def __init__(self, address: PostgresAddress, channel: str) -> None:
        self._address = address
        self._channel = f"{address.schema}.{channel}"
        self._db: psycopg.Connection[tuple[Any, ...]] | None = None
        self._pid = 0
        self._inherited: list[object] = []

    @property
    def is_open(self) -> bool:
        return self._db is not None and self._pid == os.getpid()

    def open(self) -> int:
        """Listen from here on, if it does not yet: the descriptor that a notification wakes."""
        if self._pid != os.getpid():
            if self._db is not None:  # the parent's: neither used nor closed
                self._inherited.append(self._db)
                os.close(self._db.fileno())
            self._db, self._pid = None, os.getpid()
        if self._db is None:
            self._db = connect(self._address)
            self._db.execute(f'LISTEN "{self._channel}"')
        return self._db.fileno()

    def read(self) -> list[bytes]:
        """What was notified since the last call."""
        assert self._db is not None
        line = self._db.pgconn
        poll = select.poll()
        poll.register(line.socket, select.POLLIN)
        line.consume_input()
        while poll.poll(0):  # a server that goes says goodbye, and only then ends the connection
            line.consume_input()
        heard = []
        while (call := line.notifies()) is not None:
            heard.append(call.extra)
        return heard

    def close(self) -> None:
        if self.is_open and self._db is not None:
            self._db.close()
            self._db = None
