"""Statements of one round trip, sent over libpq itself.

A cursor of psycopg adapts, caches and waits in general ways, which costs a caller half of what a
short call costs. This is the same exchange for plain values only: what is sent often is prepared
(not behind a pooler, which lends another session every time), and psycopg reads the answer. An
interruption leaves the connection busy: whoever holds it has to drop it.
"""

from __future__ import annotations

import select

from psycopg import errors, pq
from psycopg.adapt import Transformer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import psycopg

EITHER = select.POLLIN | select.POLLOUT
FORGOTTEN = b"26000"  # psycopg lets the server forget what is prepared after a ROLLBACK


class LibpqConnection:
    """The connection underneath a psycopg.Connection. Outside of a transaction only."""

    __slots__ = ("_db", "_encoding", "_line", "_made", "_names", "_poll", "_reader", "_uses")

    def __init__(self, db: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._db = db
        self._line = db.pgconn
        self._encoding = db.info.encoding
        self._names: dict[str, bytes] = {}  # of what is prepared
        self._made = 0  # names: none is given twice, for the server may have forgotten only some
        self._uses: dict[str, int] = {}
        self._poll = select.poll()
        self._poll.register(db.fileno(), select.POLLIN)
        self._reader = Transformer(db)

    def call(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """The rows of its answer; None for values that only a cursor can send: nothing was sent."""
        sent = self._plain(values)
        if sent is None:
            return None
        answer = self._send(statement, sent)
        self._check(answer, pq.ExecStatus.TUPLES_OK)
        self._reader.set_pgresult(answer)
        return self._reader.load_rows(0, answer.ntuples, tuple)

    def _plain(self, values: Sequence[Any]) -> list[bytes | None] | None:
        sent: list[bytes | None] = []
        for value in values:
            if value is None:
                sent.append(None)
            elif isinstance(value, str):
                if "\0" in value or (not value.isascii() and self._encoding != "utf-8"):
                    return None
                sent.append(value.encode())
            elif isinstance(value, int | float):
                sent.append(str(value).encode())
            else:
                return None
        return sent

    def _send(self, statement: str, values: list[bytes | None]) -> pq.abc.PGresult:
        if self._is_prepared(statement):
            self._line.send_query_prepared(self._names[statement], values)
            answer = self._answer()
            if answer.error_field(pq.DiagnosticField.SQLSTATE) != FORGOTTEN:
                return answer
            self._names.clear()
            self._uses.clear()
        self._line.send_query_params(statement.encode(), values)
        return self._answer()

    def _is_prepared(self, statement: str) -> bool:
        if statement in self._names:
            return True
        uses = self._uses[statement] = self._uses.get(statement, 0) + 1
        threshold = self._db.prepare_threshold
        if threshold is None or uses <= threshold:
            return False
        name = f"sprat_{self._made}".encode()
        self._made += 1
        self._line.send_prepare(name, statement.encode())
        self._check(self._answer(), pq.ExecStatus.COMMAND_OK)
        self._names[statement] = name
        return True

    def _check(self, answer: pq.abc.PGresult, wanted: pq.ExecStatus) -> None:
        if answer.status != wanted:
            raise errors.error_from_result(answer, encoding=self._encoding)

    def _answer(self) -> pq.abc.PGresult:
        while self._line.flush():  # more than the socket takes at once
            self._poll.modify(self._line.socket, EITHER)
            self._poll.poll()
            self._poll.modify(self._line.socket, select.POLLIN)
            self._line.consume_input()
        answer = self._result()
        assert answer is not None
        try:
            while self._result() is not None:
                pass
        except errors.OperationalError:  # the connection ended: the answer says why
            pass
        return answer

    def _result(self) -> pq.abc.PGresult | None:
        while self._line.is_busy():
            self._poll.poll()
            self._line.consume_input()
        return self._line.get_result()
