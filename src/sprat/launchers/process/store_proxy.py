"""The store proxy: the one child of a fork server, besides its workers, that has the store open.

A fork server forks, so it must not open the store itself. Its store proxy does, and serves its
requests (see proxy_requests.py). It stays as long as there are workers: a request then costs
neither a fork nor an open, and because one process always has the file open, none of the
short-lived workers is the first to open it (the first one has to read all of SQLite's log).

The store proxy also sends heartbeats for the workers while their processes run: neither a job that
keeps the interpreter busy nor an overloaded machine makes a live worker look dead. A process that
is stopped gets none.

A fork server sends CLOSE when it ends. One that is killed does not: if work waits, its store proxy
then starts another fork server, because a worker may have left a moment ago, relying on this one.
"""

from __future__ import annotations

import os
import signal
import sys

from sprat.core import jsontext, model
from sprat.core.errors import SpratError
from sprat.core.runtime import runtime
from sprat.fleet import checker
from sprat.launchers.process.launcher import MACHINE, start_fork_server
from sprat.launchers.process.parent_heartbeat import WATCH, ParentHeartbeat, read_line
from sprat.launchers.process.proxy_requests import OPERATIONS, FleetState, fleet_state
from sprat.store.open_store import open_store
from sprat.worker.signals import STOP_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from sprat.store.store import Store

TRIES = 2  # of a request whose store proxy was killed
CLOSE = b"\n"  # the request to leave


class StoreProxy:
    """The side of the fork server. The process begins with the first request, and with the first
    after it was stopped or killed."""

    def __init__(self, url: str, pool: str, *, in_child: Callable[[], None] = lambda: None) -> None:
        """`in_child` closes, in the store proxy's process, what belongs to the fork server."""
        self._url = url
        self._pool = pool
        self._in_child = in_child
        self._watched = b""  # the line that names the processes to send heartbeats for
        self._pid = 0
        self._to = self._from = -1
        self._last_error = ""

    def request(
        self,
        operation: Callable[..., FleetState],
        *arguments: object,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> FleetState | None:
        """Have an operation of this module run, and do something else meanwhile; None when it
        could not be done."""
        line = jsontext.dumps([operation.__name__, *arguments]).encode() + b"\n"
        for _ in range(TRIES):
            is_sent = self._send(line)
            meanwhile()
            reply = is_sent and read_line(self._from)
            if reply:
                return self._read(jsontext.loads(reply.decode()))
            self.stop()
        return None

    def watch(self, processes: Sequence[tuple[int, str]], settings: model.PoolSettings) -> None:
        """From now on send heartbeats for these workers while their processes run."""
        times = (settings.heartbeat_seconds, settings.start_deadline_seconds)
        self._watched = jsontext.dumps([WATCH, processes, *times]).encode() + b"\n"
        if self._pid:
            self._write(self._watched)

    def _read(self, reply: Any) -> FleetState | None:
        """The reply; an error is logged once, however often the request is tried again."""
        if not isinstance(reply, str):
            self._last_error = ""
            return fleet_state(reply)
        if reply != self._last_error:
            sys.stderr.write(f"sprat: {reply}\n")
            sys.stderr.flush()
        self._last_error = reply
        return None

    def stop(self) -> None:
        """Have it close the store and leave."""
        if self._pid:
            self._write(CLOSE)
            self.close_pipes()
            try:
                os.waitpid(self._pid, 0)
            except ChildProcessError:
                pass  # the user's code waits for children too
            self._pid = 0

    def exited(self, pid: int) -> None:
        """A child of the fork server has ended that was no worker: it may have been this one."""
        if pid == self._pid:
            self.close_pipes()
            self._pid = 0

    def close_pipes(self) -> None:
        """Also in a worker: the store proxy has to notice when the fork server is gone."""
        if self._to >= 0:
            os.close(self._to)
            os.close(self._from)
            self._to = self._from = -1

    def send_signal(self, number: int) -> None:
        """Forward a signal: after it, no other fork server is to be started."""
        if self._pid:
            try:
                os.kill(self._pid, number)
            except ProcessLookupError:
                pass

    def _send(self, line: bytes) -> bool:
        if not self._pid:
            self._start()
        return self._write(line)

    def _write(self, line: bytes) -> bool:
        try:
            while line:
                line = line[os.write(self._to, line) :]
        except BrokenPipeError:
            return False
        return True

    def _start(self) -> None:
        read, self._to = os.pipe()
        self._from, write = os.pipe()
        self._pid = runtime.fork()
        if self._pid == 0:
            self.close_pipes()
            self._in_child()
            _serve(self._url, self._pool, read, write)
        os.close(read)
        os.close(write)
        if self._watched:
            self._write(self._watched)


# -- in the process of the store proxy ----------------------------------------------------------


def _serve(url: str, pool: str, read: int, write: int) -> None:
    """Serve requests until the fork server sends CLOSE, or is gone. The reply to a request that
    fails is the error."""
    code = 1
    signals: list[int] = []
    try:
        for number in STOP_SIGNALS:  # for the workers; the store proxy leaves with its fork server
            signal.signal(number, lambda received, _: signals.append(received))
        store = open_store(url)
        heartbeat = ParentHeartbeat(store.backend)
        while (line := heartbeat.line(read)) not in (CLOSE, b""):
            name, *arguments = jsontext.loads(line.decode())
            if name == WATCH:
                heartbeat.watch(*arguments)
            else:
                _write_reply(write, _run(store, pool, name, arguments))
        if not line and not signals:
            _start_successor(store, pool, heartbeat.preparing)
        store.close()
        code = 0
    except SpratError as error:
        _write_reply(write, str(error))
    except Exception:  # noqa: BLE001  (the top of the process: os._exit would keep it quiet)
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _start_successor(store: Store, pool: str, prepared: Sequence[str]) -> None:
    """The fork server was killed. What it was about to launch has failed (its user code may have
    killed it), and the work that waits needs another fork server."""
    if prepared:
        checker.give_up(store, prepared, "the process that imports the handler ended")
    if store.pool(pool).size():
        settings = store.pool(pool).state().settings
        start_fork_server(store.url, pool, settings, machine=os.environ.get(MACHINE))


def _run(store: Store, pool: str, name: str, arguments: Sequence[Any]) -> FleetState | str:
    try:
        return OPERATIONS[name](store, pool, *arguments)
    except SpratError as error:
        return str(error)


def _write_reply(write: int, reply: FleetState | str) -> None:
    line = jsontext.dumps(reply).encode() + b"\n"
    while line:
        line = line[os.write(write, line) :]
