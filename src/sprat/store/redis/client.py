"""The connections to the server: opened when needed, opened again after the server was away, and
never shared across a fork. A script is sent again when its reply was lost; every script allows it.

A connection serves one thread at a time. A process has one; threads that use the store at the same
time open more, up to the `connections` of the URL.
"""

from __future__ import annotations

import _thread
import _weakref
import math
import os
import time

from sprat.core.errors import SpratError, StoreUnavailable
from sprat.core.leases import TOUCH_SECONDS
from sprat.core.retry_rules import backoff
from sprat.core.runtime import runtime
from sprat.store.redis import errors
from sprat.store.redis.resp import ReplyError, RespConnection
from sprat.store.redis.scripts import script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sprat.store.redis.address import RedisAddress

PATIENCE_SECONDS = 5.0  # a server that was there and is gone has this long to come back
PAUSE_SECONDS = 0.02  # before the first new try, doubled for each one after it
LONGEST_PAUSE_SECONDS = 0.5
_BROKEN = (OSError, EOFError)


class LazyConnection:
    """A connection that is opened on its first use. The thread that holds the lock uses it."""

    __slots__ = ("connection", "lock")

    def __init__(self) -> None:
        self.lock = _thread.allocate_lock()
        self.connection: RespConnection | None = None


class RedisClient:
    """Thread-safe: one command at a time on each of its connections."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self._reset()
        self._host = None if address.path is not None else address.hosts[0]
        self._was_there = False
        self._marked_at = -math.inf
        self.is_away = False  # the server did not reply to the last command
        self._closed = False
        _clients.add(_weakref.ref(self, _clients.discard))

    def run(
        self,
        name: str,
        *args: str | int,
        again_at: int | None = None,
        pool: str = "",
        patience: float | None = None,
    ) -> Any:
        """Run a script of the store. If it has to be sent again, the argument at `again_at` is set
        to 1."""
        lua = script(name)
        values = ["EVALSHA", lua.digest, 1, self.address.tag, *args]

        def send(connection: RespConnection) -> Any:
            try:
                return connection.ask(*values)
            except ReplyError as error:
                if errors.code_of(error) != "NOSCRIPT":
                    raise
                return connection.ask("EVAL", lua.text, *values[2:])

        def repeat() -> None:
            if again_at is not None:
                values[4 + again_at] = "1"

        return self._patiently(send, repeat, pool, patience)

    def ask(self, *command: str | int) -> Any:
        """Run a command that may be repeated."""
        return self._patiently(lambda connection: connection.ask(*command), lambda: None)

    def _patiently(
        self,
        send: Callable[[RespConnection], Any],
        repeat: Callable[[], None],
        pool: str = "",
        patience: float | None = None,
    ) -> Any:
        seconds = PATIENCE_SECONDS if patience is None else patience
        tries, end = 0, runtime.monotonic() + seconds
        while True:
            try:
                lazy = self._connections[0]
                if not lazy.lock.acquire(False):
                    lazy = self._other_connection()
                try:
                    return self._once(send, lazy)
                finally:
                    lazy.lock.release()
            except ReplyError as error:
                if not self._follow(error) and errors.code_of(error) not in errors.PASSING:
                    raise errors.translated(error, self.address, pool) from None
                problem: SpratError = errors.translated(error, self.address, pool)
            except _BROKEN as error:
                self.is_away = True
                problem = errors.unreachable(error, self.address)
            tries += 1
            repeat()
            if not self._was_there or runtime.monotonic() > end:
                raise problem
            pause = backoff(tries, base=PAUSE_SECONDS, cap=LONGEST_PAUSE_SECONDS, jitter=_jitter())
            runtime.sleep(pause)

    def _reset(self) -> None:
        self._connections = [LazyConnection()]
        self._growing = _thread.allocate_lock()
        self._turn = 0

    def _other_connection(self) -> LazyConnection:
        """A connection that is free, or a new one; at the maximum, the next one in turn as soon as
        its thread is done with it. Its lock is held."""
        for lazy in self._connections:
            if lazy.lock.acquire(False):
                return lazy
        with self._growing:
            if len(self._connections) < self.address.connections:
                lazy = LazyConnection()
                lazy.lock.acquire()
                self._connections.append(lazy)
                return lazy
            self._turn += 1
            lazy = self._connections[self._turn % len(self._connections)]
        lazy.lock.acquire()
        return lazy

    def _once(self, send: Callable[[RespConnection], Any], lazy: LazyConnection) -> Any:
        if self._closed:
            raise StoreUnavailable(f"the store {self.address} was closed: open it again")
        connection = lazy.connection
        if connection is None:
            connection = lazy.connection = self.connect()
        try:
            reply = send(connection)
        except ReplyError as error:
            if errors.code_of(error) in errors.PASSING or "MOVED" in str(error):
                self._disconnect(lazy)
            raise
        except BaseException:  # also Ctrl-C: the reply to this command must not be read by the next
            self._disconnect(lazy)
            raise
        self._was_there = True
        self.is_away = False
        return reply

    def is_mark_due(self) -> bool:
        """Whether the next exchange is to mark the store (leases.py): the last one did long ago."""
        now = runtime.monotonic()
        if now - self._marked_at < TOUCH_SECONDS:
            return False
        self._marked_at = now
        return True

    def connect(self) -> RespConnection:
        """A new connection, ready for commands."""
        host = self._host
        if self.address.service is not None:
            host = _ask_sentinels(self.address)
        connection = RespConnection(self.address, host)
        try:
            connection.greet(self.address)
        except BaseException:
            connection.close()
            raise
        return connection

    def _follow(self, error: Exception) -> bool:
        """Follow the redirection of a cluster's node: all keys of the store are on one node."""
        words = str(error).split()
        if words[0] != "MOVED":
            return False
        host, _, port = words[2].rpartition(":")
        before = self._host[0] if self._host else ""
        self._host = (host or before, int(port))
        self._was_there = True
        return True

    def _disconnect(self, lazy: LazyConnection) -> None:
        connection, lazy.connection = lazy.connection, None
        if connection is not None:
            connection.close()

    def after_fork_in_child(self) -> None:
        """The connections belong to the parent: this process opens its own on their next use."""
        for lazy in self._connections:
            self._disconnect(lazy)
        self._reset()
        self.is_away = False

    def close(self) -> None:
        self._closed = True
        for lazy in self._connections.copy():
            with lazy.lock:
                self._disconnect(lazy)


def _ask_sentinels(address: RedisAddress) -> tuple[str, int]:
    """Where the master is now, by the first sentinel that knows."""
    problem: BaseException = OSError("no sentinel knows the service")
    for host in address.hosts:
        try:
            connection = RespConnection(address, host)
            try:
                if address.sentinel_password is not None:
                    user = () if address.sentinel_user is None else (address.sentinel_user,)
                    connection.ask("AUTH", *user, address.sentinel_password)
                master = connection.ask(
                    "SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.service or ""
                )
            finally:
                connection.close()
        except (*_BROKEN, ReplyError) as error:
            problem = error
            continue
        if master:
            return str(master[0]), int(master[1])
    raise OSError(f"no sentinel knows where {address.service} is: {problem}")


def _jitter() -> float:
    return time.monotonic_ns() % 1000 / 1000


_clients: set[_weakref.ReferenceType[RedisClient]] = set()


def _in_child() -> None:
    for client in [reference() for reference in _clients.copy()]:
        if client is not None:
            client.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
