"""The way to the server: connects when needed, comes back after it was gone, and never crosses a
fork. A script is sent again when its reply was lost, which every script is written for.

A line is one connection, for one thread at a time. A process has one line; threads that use the
store at the same time open more, up to the `connections` of the URL.
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
from sprat.store.redis import errors
from sprat.store.redis.resp import ReplyError, RespConnection
from sprat.store.redis.scripts import script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sprat.store.redis.address import RedisAddress

PATIENCE_SECONDS = 5.0  # a server that was there and is gone gets so long to come back
PAUSE_SECONDS = 0.02  # before the first new try, doubled for each one after it
LONGEST_PAUSE_SECONDS = 0.5
_BROKEN = (OSError, EOFError)


class LazyConnection:
    """A connection that is opened on its first use. The thread that holds the lock uses it."""

    __slots__ = ("lock", "wire")

    def __init__(self) -> None:
        self.lock = _thread.allocate_lock()
        self.wire: RespConnection | None = None


class RedisClient:
    """Thread-safe: one conversation at a time on each of its lines."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self._start_anew()
        self._host = None if address.path is not None else address.hosts[0]
        self._was_there = False
        self._marked_at = -math.inf
        self.is_away = False  # the server did not answer when it was last asked
        self._closed = False
        _links.add(_weakref.ref(self, _links.discard))

    def run(
        self,
        name: str,
        *args: str | int,
        again_at: int | None = None,
        pool: str = "",
        patience: float | None = None,
    ) -> Any:
        """Run a script of the store. If it has to be sent again, `again_at` says which of its
        arguments tells it so."""
        wanted = script(name)
        values = ["EVALSHA", wanted.digest, 1, self.address.tag, *args]

        def converse(wire: RespConnection) -> Any:
            try:
                return wire.ask(*values)
            except ReplyError as error:
                if errors.code_of(error) != "NOSCRIPT":
                    raise
                return wire.ask("EVAL", wanted.text, *values[2:])

        def repeat() -> None:
            if again_at is not None:
                values[4 + again_at] = "1"

        return self._patiently(converse, repeat, pool, patience)

    def ask(self, *command: str | int) -> Any:
        """Run a command that may be repeated."""
        return self._patiently(lambda wire: wire.ask(*command), lambda: None)

    def _patiently(
        self,
        converse: Callable[[RespConnection], Any],
        repeat: Callable[[], None],
        pool: str = "",
        patience: float | None = None,
    ) -> Any:
        seconds = PATIENCE_SECONDS if patience is None else patience
        tries, end = 0, time.monotonic() + seconds
        while True:
            try:
                line = self._lines[0]
                if not line.lock.acquire(False):
                    line = self._other_line()
                try:
                    return self._once(converse, line)
                finally:
                    line.lock.release()
            except ReplyError as error:
                if not self._follow(error) and errors.code_of(error) not in errors.PASSING:
                    raise errors.translated(error, self.address, pool) from None
                problem: SpratError = errors.translated(error, self.address, pool)
            except _BROKEN as error:
                self.is_away = True
                problem = errors.unreachable(error, self.address)
            tries += 1
            repeat()
            if not self._was_there or time.monotonic() > end:
                raise problem
            pause = backoff(tries, base=PAUSE_SECONDS, cap=LONGEST_PAUSE_SECONDS, jitter=_jitter())
            time.sleep(pause)

    def _start_anew(self) -> None:
        self._lines = [LazyConnection()]
        self._growing = _thread.allocate_lock()
        self._turn = 0

    def _other_line(self) -> LazyConnection:
        """A line that is free, or a new one; where there are as many as there may be, the next one
        in turn when its thread is done with it. Its lock is held."""
        for line in self._lines:
            if line.lock.acquire(False):
                return line
        with self._growing:
            if len(self._lines) < self.address.connections:
                line = LazyConnection()
                line.lock.acquire()
                self._lines.append(line)
                return line
            self._turn += 1
            line = self._lines[self._turn % len(self._lines)]
        line.lock.acquire()
        return line

    def _once(self, converse: Callable[[RespConnection], Any], line: LazyConnection) -> Any:
        if self._closed:
            raise StoreUnavailable(f"the store {self.address} was closed: open it again")
        wire = line.wire
        if wire is None:
            wire = line.wire = self.connect()
        try:
            answer = converse(wire)
        except ReplyError as error:
            if errors.code_of(error) in errors.PASSING or "MOVED" in str(error):
                self._hang_up(line)
            raise
        except BaseException:  # also of Ctrl-C: the reply of this question must not answer the next
            self._hang_up(line)
            raise
        self._was_there = True
        self.is_away = False
        return answer

    def is_mark_due(self) -> bool:
        """Whether the next exchange is to mark the store (leases.py): the last one did long ago."""
        now = time.monotonic()
        if now - self._marked_at < TOUCH_SECONDS:
            return False
        self._marked_at = now
        return True

    def connect(self) -> RespConnection:
        """A new connection, ready for commands."""
        host = self._host
        if self.address.service is not None:
            host = _ask_sentinels(self.address)
        wire = RespConnection(self.address, host)
        try:
            wire.greet(self.address)
        except BaseException:
            wire.close()
            raise
        return wire

    def _follow(self, error: Exception) -> bool:
        """Go where a cluster's node says that the store is: all its keys are in one place."""
        words = str(error).split()
        if words[0] != "MOVED":
            return False
        host, _, port = words[2].rpartition(":")
        before = self._host[0] if self._host else ""
        self._host = (host or before, int(port))
        self._was_there = True
        return True

    def _hang_up(self, line: LazyConnection) -> None:
        wire, line.wire = line.wire, None
        if wire is not None:
            wire.close()

    def after_fork_in_child(self) -> None:
        """The connections are the parent's: ours are opened on their next use."""
        for line in self._lines:
            self._hang_up(line)
        self._start_anew()
        self.is_away = False

    def close(self) -> None:
        self._closed = True
        for line in self._lines.copy():
            with line.lock:
                self._hang_up(line)


def _ask_sentinels(address: RedisAddress) -> tuple[str, int]:
    """Where the master is now, by the first sentinel that knows."""
    problem: BaseException = OSError("no sentinel knows the service")
    for host in address.hosts:
        try:
            wire = RespConnection(address, host)
            try:
                if address.sentinel_password is not None:
                    user = () if address.sentinel_user is None else (address.sentinel_user,)
                    wire.ask("AUTH", *user, address.sentinel_password)
                found = wire.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.service or "")
            finally:
                wire.close()
        except (*_BROKEN, ReplyError) as error:
            problem = error
            continue
        if found:
            return str(found[0]), int(found[1])
    raise OSError(f"no sentinel knows where {address.service} is: {problem}")


def _jitter() -> float:
    return time.monotonic_ns() % 1000 / 1000


_links: set[_weakref.ReferenceType[RedisClient]] = set()


def _in_child() -> None:
    for found in [link() for link in _links.copy()]:
        if found is not None:
            found.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
