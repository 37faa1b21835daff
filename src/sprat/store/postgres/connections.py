"""Connections to the server: one for each thread that is in a verb, opened again when they end.

A call whose connection breaks is made again over a new one, with growing pauses, for a while:
every verb may be repeated (see backend.py). No connection crosses a fork: a child leaves what it
inherited alone, so that its parent's sessions live on, and opens its own.
"""

from __future__ import annotations

import os
import threading
import time

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sprat.core.counters import HeldStatistics
from sprat.core.errors import StoreUnavailable
from sprat.core.leases import TOUCH_SECONDS
from sprat.core.retry_rules import backoff
from sprat.core.runtime import runtime
from sprat.store.postgres import errors, schema
from sprat.store.postgres.libpq import LibpqConnection
from sprat.store.postgres.transaction import Names, PostgresTransaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Concatenate, ParamSpec, TypeVar

    from sprat.core.counters import Event
    from sprat.store.postgres.address import PostgresAddress
    from sprat.store.postgres.transaction import Cursor

    P = ParamSpec("P")
    T = TypeVar("T")

PATIENCE_SECONDS = 15.0  # how long a verb goes on trying to reach the server
FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 1.0
# A server that vanished without a word is noticed; what the URL says comes first.
DEFAULTS: dict[str, str | int] = {
    "application_name": "sprat",
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "tcp_user_timeout": 30_000,
}
RACES = 100  # tries of a transaction that loses against others

READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class Session:
    """One connection with its cursor. Outside of a transaction every statement is one."""

    __slots__ = ("cursor", "db", "line")

    def __init__(self, db: psycopg.Connection[tuple[Any, ...]]) -> None:
        self.db = db
        self.cursor: Cursor = psycopg.RawCursor(db)
        self.line = LibpqConnection(db)


class Sessions:
    def __init__(self, address: PostgresAddress) -> None:
        self.address = address
        self.names = Names(address.schema)
        self.is_pooled = False  # known once a connection is open
        self._closed = False
        self._inherited: list[list[Session]] = []
        self._start_anew()
        self._idle.append(self._open_first())

    def _start_anew(self) -> None:
        self._pid = os.getpid()
        self._idle: list[Session] = []
        self._seats = threading.Semaphore(self.address.connections)
        self._notes = HeldStatistics()
        self._notes_lock = threading.Lock()
        self._marked_at = 0.0  # by the monotonic clock: see marks.py

    # -- verbs ------------------------------------------------------------------------------

    def call(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """One statement that is a transaction of its own: one round trip."""
        return self.repeatable(lambda tx: tx.rows(statement, values))

    def repeatable(self, action: Callable[[PostgresTransaction], T]) -> T:
        """Let `action` run one statement."""
        return self._with_patience(
            lambda link, again: action(
                PostgresTransaction(link.cursor, self.names, again=again, line=link.line)
            )
        )

    def read(
        self,
        verb: Callable[Concatenate[PostgresTransaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a verb that only reads; it sees one moment."""
        return self._with_patience(
            lambda link, again: self._in_one(link, READ, again, verb, args, kwargs)[0]
        )

    def write(
        self,
        verb: Callable[Concatenate[PostgresTransaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a verb that writes, whole or not at all."""
        answer, tx = self._with_patience(
            lambda link, again: self._in_one(link, "BEGIN", again, verb, args, kwargs)
        )
        if tx.tally.stats:
            self.note(tx.tally.stats, tx.now)
        return answer

    def _in_one(
        self,
        link: Session,
        begin: str,
        again: bool,
        verb: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[T, PostgresTransaction]:
        link.cursor.execute(begin)
        try:
            tx = PostgresTransaction(link.cursor, self.names, again=again)
            answer = verb(tx, *args, **kwargs)
            tx.finish()
            link.cursor.execute("COMMIT")
        except BaseException:
            if not link.db.closed:
                link.cursor.execute("ROLLBACK")
            raise
        return answer, tx

    def join(
        self,
        connection: object,
        verb: Callable[Concatenate[PostgresTransaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a verb inside the transaction of the caller's own connection."""
        own = schema.of_the_caller(connection)
        with own.transaction():  # a savepoint: what is refused leaves the caller's work alone
            tx = PostgresTransaction(psycopg.RawCursor(own), self.names)
            try:
                answer = verb(tx, *args, **kwargs)
                tx.finish()
                tx.add_stats(HeldStatistics().rows(tx.tally.stats, tx.now))
            except psycopg.Error as error:
                raise errors.translated(error, self.address) from error
        return answer

    # -- statistics that wait (see counters.py) --------------------------------------------------

    def note(self, stats: list[Event], now: float) -> None:
        self.hold(stats, now)
        self.write_due_notes()

    def hold(self, stats: list[Event], now: float) -> None:
        """Keep them for the next call that writes: a job is about to start, or its result to be
        told, and that comes first."""
        with self._notes_lock:
            self._notes.hold(stats, now)

    def write_due_notes(self) -> None:
        if self._notes and self._notes.is_due():
            self.write_notes()

    def write_notes(self) -> None:
        """Write the statistics that are still held back, for somebody who reads them now."""
        self._check_fork()
        with self._notes_lock:
            rows = self._notes.rows([], 0.0)
            self._notes.written()
        if rows:
            try:
                self.repeatable(lambda tx: tx.add_stats(rows, later=True))
            except StoreUnavailable:  # statistics are not worth failing for
                pass

    # -- the mark ---------------------------------------------------------------------------

    def touch_seconds(self) -> float | None:
        """For a claim, which notes that the store works if the last mark is older than this. None
        when this process just did it."""
        now = runtime.monotonic()
        if now - self._marked_at < TOUCH_SECONDS:
            return None
        self._marked_at = now
        return TOUCH_SECONDS

    # -- connections ------------------------------------------------------------------------

    def _with_patience(self, action: Callable[[Session, bool], T]) -> T:
        end = runtime.monotonic() + PATIENCE_SECONDS
        again = False
        tries = races = 0
        while True:
            link = None
            try:
                link = self._take()
                answer = action(link, again)
            except psycopg.Error as error:
                tries += 1
                if link is None:
                    worth_it = not errors.is_hopeless(error)
                elif isinstance(error, errors.LOST_A_RACE) and not link.db.closed:
                    self._give(link)
                    races += 1
                    worth_it = races < RACES
                    end = max(end, runtime.monotonic() + 1.0)
                elif errors.is_lost_server(error) or link.db.closed:
                    self._drop(link)
                    worth_it = again = True
                else:
                    self._give(link)
                    worth_it = False
                if not worth_it or runtime.monotonic() > end:
                    raise errors.translated(error, self.address) from error
                self._pause(tries)
            except BaseException:
                if link is not None:
                    self._give_or_drop(link)
                raise
            else:
                self._give(link)
                return answer

    def _pause(self, tries: int) -> None:
        jitter = time.monotonic_ns() % 1000 / 1000
        pause = backoff(tries, base=FIRST_PAUSE_SECONDS, cap=LONGEST_PAUSE_SECONDS, jitter=jitter)
        runtime.sleep(pause)

    def _check_fork(self) -> None:
        if self._pid != os.getpid():
            self._leave_to_the_parent()

    def _leave_to_the_parent(self) -> None:
        """Close our end of the inherited sockets without a word to the server, and keep the
        objects: to let go of them would end the parent's sessions."""
        for link in self._idle:
            try:
                os.close(link.db.fileno())
            except (OSError, psycopg.Error):
                pass
        self._inherited.append(self._idle)
        self._start_anew()

    def _take(self) -> Session:
        self._check_fork()
        if self._closed:
            raise StoreUnavailable(f"the store {self.address.shown} was closed: open it again")
        self._seats.acquire()
        try:
            while (link := self._idle_one()) is not None:
                if not link.db.closed:
                    return link
            return self._open()
        except BaseException:
            self._seats.release()
            raise

    def _idle_one(self) -> Session | None:
        try:
            return self._idle.pop()
        except IndexError:  # also when another thread was faster
            return None

    def _give(self, link: Session) -> None:
        self._idle.append(link)
        self._seats.release()
        if self._closed:
            self._close_idle()

    def _give_or_drop(self, link: Session) -> None:
        """After an interruption: keep the connection only if nothing is under way on it."""
        status = link.db.info.transaction_status
        if status == psycopg.pq.TransactionStatus.IDLE:
            self._give(link)
        else:
            self._drop(link)

    def _drop(self, link: Session) -> None:
        link.db.close()
        self._marked_at = 0.0
        self._close_idle()  # they lead to the same server
        self._seats.release()

    def _open_first(self) -> Session:
        """A server that is not there is said at once; one that is just starting is waited for."""
        end = runtime.monotonic() + PATIENCE_SECONDS
        tries = 0
        while True:
            try:
                return self._open()
            except psycopg.Error as error:
                tries += 1
                if not errors.is_passing(error) or runtime.monotonic() > end:
                    raise errors.translated(error, self.address) from error
                self._pause(tries)

    def _open(self) -> Session:
        db = connect(self.address)
        try:
            pooled = schema.prepare(db, self.address, self.names)
        except BaseException:
            db.close()
            raise
        if pooled:
            db.prepare_threshold = None
        self.is_pooled = pooled
        return Session(db)

    def _close_idle(self) -> None:
        while (link := self._idle_one()) is not None:
            link.db.close()

    def close(self) -> None:
        if not self._closed:
            self.write_notes()
            self._closed = True
            self._close_idle()


def connect(address: PostgresAddress) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection on which every statement is a transaction of its own."""
    missing = DEFAULTS.keys() - conninfo_to_dict(address.dsn).keys()
    conninfo = make_conninfo(address.dsn, **{name: DEFAULTS[name] for name in missing})
    return psycopg.connect(conninfo, autocommit=True)
