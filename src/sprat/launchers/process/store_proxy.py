"""The store proxy: the one child of a fork server, besides its workers, that has the store open.

A fork server forks, so it must not open the store itself. Its store proxy does, and serves its
requests: report workers that were killed, and run the next scaling pass. It stays as long as there
are workers: a request then costs neither a fork nor an open, and because one process always has the
file open, none of the short-lived workers is the first to open it (the first one has to read all of
SQLite's log).

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
from sprat.core.record import Record
from sprat.fleet import checker, controller_lease, policy_input
from sprat.launchers.process import attendant
from sprat.launchers.process.launcher import MACHINE, MachineLauncher, start_fork_server
from sprat.launchers.process.parent_heartbeat import WATCH, ParentHeartbeat, read_line
from sprat.store.open_store import open_store
from sprat.worker.signals import STOP_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from sprat.store.store import Store

TRIES = 2  # of a request whose store proxy was killed
CLOSE = b"\n"  # the request to leave
CONTROLLER_SECONDS = 1.0  # between two looks whether a controller is alive


class FleetState(Record):
    """The reply of the store proxy."""

    settings: model.PoolSettings
    version: int
    launch: tuple[str, ...]
    wake_in: float | None  # seconds until there may be something to do, None: there is nothing
    led: int = 0  # the version of the controller's lease, where a controller leads the pool


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
            return _fleet_state(reply)
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
        self._pid = os.fork()
        if self._pid == 0:
            self.close_pipes()
            self._in_child()
            _serve(self._url, self._pool, read, write)
        os.close(read)
        os.close(write)
        if self._watched:
            self._write(self._watched)


def _fleet_state(reply: Any) -> FleetState:
    settings, version, launch, wake_in, led = reply
    return FleetState(
        settings=model.PoolSettings.of(settings),
        version=version,
        launch=tuple(launch),
        wake_in=wake_in,
        led=led,
    )


# -- requests -----------------------------------------------------------------------------------


def begin(store: Store, pool: str, worker_ids: Sequence[str]) -> FleetState:
    if worker_ids:
        state = store.pool(pool).state()
        return FleetState(
            settings=state.settings,
            version=state.version,
            launch=tuple(worker_ids),
            wake_in=_wake_in(store, pool, state.settings, worker_ids),
        )
    return run_pass(store, pool, [], None)


def run_pass(
    store: Store,
    pool: str,
    exits: Sequence[tuple[str, str]],
    version: int | None,
    machine: str | None = None,
    ours: Sequence[str] = (),
    called_ago: float = 0.0,
    led: int = 0,
) -> FleetState:
    """Report the exits, and run a scaling pass, unless a controller does that. If the pool's
    settings changed, this fork server has the wrong code for new workers: another one is started
    for them. One that runs a machine keeps to the maximum that it was launched with."""
    report_exits(store, pool, exits)
    lease = store.backend.document(controller_lease.KIND, controller_lease.name_of(pool, None))
    if lease is not None:
        return _leave_to_controller(store, pool, lease.version, led)
    state = store.pool(pool).state()
    checked = checker.decide(store, pool, _limited(state.settings, machine))
    launch = checked.spawned_ids
    if launch and version not in (None, state.version):
        launcher = None if machine is None else MachineLauncher(machine)
        checker.launch(store, pool, state.settings, launch, launcher)
        launch = ()
    return FleetState(
        settings=state.settings,
        version=state.version,
        launch=launch,
        wake_in=_wake_in(store, pool, state.settings, (*ours, *launch), called_ago),
    )


def _leave_to_controller(store: Store, pool: str, version: int, led: int) -> FleetState:
    """A controller that renewed its lease since the first request is alive."""
    waits = led in (0, version) and store.pool(pool).size() > 0
    return _nothing_more(store, pool, CONTROLLER_SECONDS if waits else None).replace(led=version)


def _limited(settings: model.PoolSettings, machine: str | None) -> model.PoolSettings:
    most = None if machine is None else jsontext.loads(machine)["max_workers"]
    high = settings.max_workers if most is None else min(most, settings.max_workers)
    return settings.replace(max_workers=high, min_workers=min(settings.min_workers, high))


def report_exits(store: Store, pool: str, exits: Sequence[tuple[str, str]]) -> FleetState:
    """Mark workers that did not leave in order as lost, so that their items are free at once."""
    lost = [store.workers.update_status(w, model.LOST, reason=how) for w, how in exits if how]
    state = _nothing_more(store, pool)
    if any(lost):
        store.happened(model.WORKER_LOST, pool, state.settings)
        store.happened(model.POOL_EMPTY, pool, state.settings)  # if that was its last attempt
    return state


def _nothing_more(store: Store, pool: str, wake_in: float | None = None) -> FleetState:
    state = store.pool(pool).state()
    return FleetState(settings=state.settings, version=state.version, launch=(), wake_in=wake_in)


def give_up(store: Store, pool: str, worker_ids: Sequence[str], why: str) -> FleetState:
    """The launch failed; it may be worth another try later."""
    checker.give_up(store, worker_ids, why)
    settings = store.pool(pool).state().settings
    return _nothing_more(store, pool, _wake_in(store, pool, settings))


def cancel_launch(store: Store, pool: str, worker_ids: Sequence[str], why: str) -> FleetState:
    for worker_id in worker_ids:
        store.workers.update_status(worker_id, model.TERMINATED, reason=why)
    return _nothing_more(store, pool)


def _wake_in(
    store: Store,
    pool: str,
    settings: model.PoolSettings,
    ours: Sequence[str] = (),
    called_ago: float = 0.0,
) -> float | None:
    counts = store.pool(pool).counts()
    if not counts.pending and not counts.claimed:
        return None
    snapshot = policy_input.observe(store, pool, settings)
    return attendant.look_again_in(snapshot, settings, ours=ours, called_ago=called_ago)


OPERATIONS: dict[str, Callable[..., FleetState]] = {
    operation.__name__: operation
    for operation in (begin, run_pass, report_exits, give_up, cancel_launch)
}


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
