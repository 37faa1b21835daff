"""One connection to the file: opening, transactions, errors in our words.

Writing transactions take the write lock at once (BEGIN IMMEDIATE), so none is ever rolled back
for a stale snapshot. A push is synced to disk before it returns; claims and settles are left to
the next sync (they survive any crash of a process, not a power cut) unless `sync_all` is set.
"""

from __future__ import annotations

import _thread
import os

import apsw

from sprat.core.counters import Counters, HeldStatistics
from sprat.core.errors import SpratError, StoreError, StoreMismatch, StoreUnavailable
from sprat.core.runtime import runtime
from sprat.store.sqlite import clock, forks, schema
from sprat.store.sqlite import counters as tally
from sprat.store.sqlite.busy_handler import BUSY_SECONDS, Patience
from sprat.store.sqlite.database_file import DatabaseFile
from sprat.store.sqlite.transaction import SqliteTransaction, WriteTransaction
from sprat.store.sqlite.wakeup import WakeupFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Concatenate, ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")

CHECKPOINT_BYTES = 1 << 22  # of WAL before it is folded into the file; reopening reads all of it


class Connection:
    """Opens the file, again after a fork (see forks.py); runs one transaction at a time."""

    def __init__(self, path: str, *, sync_all: bool = False) -> None:
        self.path = os.path.abspath(path)
        self.file = DatabaseFile(self.path)
        self.bell = WakeupFile(self.path + "-bell")
        self.cancel_bell = WakeupFile(self.path + "-cancel")
        self.patience = Patience(self.path + "-wal")
        self.lock = _thread.allocate_lock()
        self.notes = HeldStatistics()
        self.touch_at = 0.0  # when a claim has to mark the store: see marks.py
        self.sync_all = sync_all
        self._tally = Counters()
        self._synced: bool | None = True
        self._inherited: list[apsw.Connection] = []
        self._db: apsw.Connection | None = None
        self._closed = False
        self._open()
        forks.watch(self)
        self.follow_wall_clock()

    def read(
        self,
        verb: Callable[Concatenate[SqliteTransaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a verb that only reads; it sees one moment."""
        with self.lock:
            try:
                db = self._ready(None)
                self._run("BEGIN")
                answer = verb(SqliteTransaction(db, self._cursor), *args, **kwargs)
                self._run("COMMIT")
            except BaseException as error:
                self.undo(error)
                raise
        return answer

    def write(
        self, verb: Callable[Concatenate[WriteTransaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a verb that writes, whole or not at all."""
        return self._write(self.sync_all, True, verb, args, kwargs)

    def write_synced(
        self, verb: Callable[Concatenate[WriteTransaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The same, and it is on disk when this returns, with its statistics: whoever pushes may
        not write again for long. Before it returns it looks again: what was written into a file
        that went away meanwhile is not acknowledged."""
        self.file.check()
        answer = self._write(True, False, verb, args, kwargs)
        self.file.check()
        return answer

    def _write(
        self,
        synced: bool,
        holds: bool,
        verb: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> T:
        with self.lock:
            try:
                self.begin(synced)
                return self.finish(holds, verb, args, kwargs)
            except BaseException as error:
                self.undo(error)
                raise

    # The steps of a writing transaction, for a holder of the lock (exchange_fast_path.py takes them
    # itself). A signal handler may raise between any two of them. The lock is let go all the same
    # (`with` sees to it), and a transaction that was left open is undone by the next one.

    def begin(self, synced: bool) -> Callable[..., Any]:
        """Begin to write; returns what runs a statement."""
        if self._db is None or synced is not self._synced or not self._db.get_autocommit():
            self._ready(synced)
        run = self._run
        run("BEGIN IMMEDIATE")
        if self.patience.was_long:
            self.patience.mark(self.transaction())
        return run

    def finish(
        self, holds: bool, verb: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> T:
        """Run a verb in the transaction that was begun, and commit."""
        tx = self.transaction()
        answer = verb(tx, *args, **kwargs)
        self.end(tx, holds)
        if tx.rings:
            self.bell.ring()
        if tx.takes:
            self.cancel_bell.ring()
        return answer

    def transaction(self) -> WriteTransaction:
        """What a verb works with, in a transaction that was begun."""
        return WriteTransaction(self._db or self._open(), self._cursor, self._tally, self.patience)

    def end(self, tx: WriteTransaction, holds: bool) -> None:
        """Commit, with what the transaction summed up; statistics may be held back."""
        done, notes = tx.tally, self.notes
        if done.counts:
            tally.write_counts(tx)
            done.counts = {}
        if holds and not tx.ends and runtime.monotonic() < notes.due_at:
            self._run("COMMIT")
            if done.stats:
                notes.hold(done.stats, tx.now)
        else:
            tally.write_stats(tx, notes)
            self._run("COMMIT")
            notes.written()
        if done.stats:
            done.stats = []

    def undo(self, error: BaseException) -> None:
        """Roll back; raises a driver's error in our words, the caller raises any other."""
        self._tally = Counters()
        if self._db is not None and not self._db.get_autocommit():
            self._db.execute("ROLLBACK")
        raise_translated(error, self.path)

    def _ready(self, synced: bool | None) -> apsw.Connection:
        """An open connection, outside of a transaction, that syncs what it should."""
        db = self._db or self._open()
        if not db.get_autocommit():
            db.execute("ROLLBACK")
        if synced is not None and synced is not self._synced:
            self._synced = None  # unknown, if this is interrupted
            db.execute("PRAGMA synchronous = " + ("FULL" if synced else "NORMAL"))
            self._synced = synced
        return db

    def _open(self) -> apsw.Connection:
        if self._closed:
            raise StoreUnavailable(f"the store {self.path} was closed: open it again")
        self.file.prepare()
        self._db = _open(self.path, self.patience)
        self._cursor = self._db.cursor()
        self._run: Callable[..., Any] = self._cursor.execute
        self._synced = True
        return self._db

    def before_fork(self) -> bool:
        """Close what must not cross the fork. False if a transaction does not end: it may be
        one that the fork itself interrupted, in a signal handler."""
        if not self.lock.acquire(timeout=BUSY_SECONDS):
            return False
        db, self._db = self._db, None
        if db is not None:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # the next close will do it
            db.close()
        return True

    def after_fork_in_parent(self) -> None:
        self.lock.release()

    def after_fork_in_child(self) -> None:
        """A connection that came along after all is neither used nor closed."""
        if self._db is not None:
            self._inherited.append(self._db)
            self._db = None
        self.lock = _thread.allocate_lock()
        self._tally = Counters()
        self.notes = HeldStatistics()  # those that came along are the parent's to write
        self.bell.close()
        self.cancel_bell.close()

    def write_notes(self) -> None:
        """Write the statistics that are still held back, for somebody who reads them now."""
        if self.notes:
            try:
                self._write(True, False, lambda tx: None, (), {})
            except StoreError:  # a full disk: they go on waiting, and reading goes on
                pass

    def follow_wall_clock(self) -> None:
        """See clock.py."""
        if self.read(clock.is_behind):
            self.write(clock.catch_up)

    def close(self) -> None:
        self.write_notes()
        with self.lock:
            self._closed = True
            db, self._db = self._db, None
            self.bell.close()
            self.cancel_bell.close()
            if db is not None:
                self._cursor.close()
                db.close()

    def compact(self) -> tuple[int, int]:
        """Write the file anew without its free pages. Other processes cannot write meanwhile, nor
        send heartbeats: no lease is judged until they could."""
        self.write_synced(self.patience.mark, BUSY_SECONDS)
        before = self.file.size()
        with self.lock:
            try:
                db = self._ready(True)
                db.execute("VACUUM")
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except BaseException as error:
                self.undo(error)
                raise
        self.write(self.patience.mark)
        return before, self.file.size()

    def describe(self) -> dict[str, object]:
        return {
            "kind": "sqlite",
            "path": self.path,
            "driver": f"apsw {apsw.apsw_version()}",
            "sqlite": apsw.sqlite_lib_version(),
            "schema": self.read(lambda tx: tx.db.pragma("user_version")),
            "synced": "every write" if self.sync_all else "pushes",
            "clock_ahead_seconds": round(self.read(lambda tx: tx.now) - runtime.time(), 3),
        }


def raise_translated(error: BaseException, path: str) -> None:
    """Raise a driver's error in our words; the caller raises any other as it is."""
    ours = translated(error, path)
    if ours is not error:
        raise ours from error


def translated(error: BaseException, path: str) -> BaseException:
    """The driver's errors in our words; everything else as it is."""
    if isinstance(error, SpratError) or not isinstance(error, apsw.Error):
        return error
    if isinstance(error, apsw.NotADBError):
        return StoreMismatch(f"{path} is not an SQLite database: name another file")
    if isinstance(error, apsw.CorruptError):
        return StoreMismatch(f"{path} is damaged ({error}): restore it from a copy")
    if isinstance(error, apsw.FullError) or "full" in str(error):
        return StoreUnavailable(f"the disk is full, {path} did not change: free some space")
    if isinstance(error, apsw.BusyError):
        return StoreUnavailable(
            f"{path} stayed locked for {BUSY_SECONDS:.0f} s: another program holds it, try again"
        )
    if isinstance(error, apsw.ReadOnlyError):
        return StoreUnavailable(f"{path} cannot be written: check its permissions")
    if isinstance(error, apsw.CantOpenError):
        return StoreUnavailable(f"{path} cannot be opened: check the path and its permissions")
    if isinstance(error, apsw.IOError):
        return StoreUnavailable(f"{path} cannot be read or written ({error}): check the disk")
    return error


def _open(path: str, patience: Patience) -> apsw.Connection:
    db = None
    try:
        # Connection.lock lets one thread in at a time: SQLite need not lock each call once more.
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX
        db = apsw.Connection(path, flags=flags)
        # Plans do not depend on bound values; without this SQLite prepares a statement with a
        # bound LIMIT or a partial index anew at every call, ten times the cost of running it.
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        db.set_busy_handler(patience)
        schema.prepare(db, path)
        db.pragma("wal_autocheckpoint", CHECKPOINT_BYTES // int(db.pragma("page_size")))
        db.pragma("synchronous", "FULL")
    except BaseException as error:
        if db is not None:
            db.close()
        raise_translated(error, path)
        raise
    return db
