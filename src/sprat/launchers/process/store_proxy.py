"""The clerk: the one process of a nest, besides its workers, that has the store open.

A nest forks, so it must not open the store itself; its clerk is a child that does, and runs the
nest's errands there: report workers that were killed, and run the next scaling pass. It stays as
long as there are workers: an errand then costs neither a fork nor an open, and because somebody
always has the file open, none of the short-lived workers is the first to open it (the first one
has to read all of SQLite's log).

The clerk also sends heartbeats for the nest's workers while their processes run: neither a job that
keeps the interpreter busy nor an overloaded machine makes a live worker look dead. A process that
is stopped gets none.

A nest says farewell when it lets its clerk go. One that is killed does not: if work waits, its
clerk then starts another nest, because a worker may have left a moment ago, relying on this one.
"""

from __future__ import annotations

import os
import signal
import sys

from sprat.core import jsontext, model
from sprat.core.errors import SpratError
from sprat.core.record import Record
from sprat.fleet import checker, controller_lease, policy_input
from sprat.launchers.process import attendance
from sprat.launchers.process.launcher import ORDER, OrderedLauncher, start_nest
from sprat.launchers.process.parent_heartbeat import WATCH, ParentHeartbeat, read_line
from sprat.store.open_store import open_store
from sprat.worker.signals import STOP_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from sprat.store.store import Store

TRIES = 2  # of an errand whose clerk was killed
FAREWELL = b"\n"  # instead of an errand
CONTROLLER_SECONDS = 1.0  # between two looks whether a controller is alive


class FleetState(Record):
    """What the clerk brings back from the store."""

    settings: model.PoolSettings
    version: int
    launch: tuple[str, ...]
    wake_in: float | None  # seconds until there may be something to do, None: there is nothing
    led: int = 0  # the version of the controller's lease, where a controller leads the pool


class StoreProxy:
    """Seen from the nest. The process begins with the first errand, and with the first after
    it was dismissed or killed."""

    def __init__(self, url: str, pool: str, *, in_child: Callable[[], None] = lambda: None) -> None:
        """`in_child` lets go, in the clerk's process, of what is the nest's."""
        self._url = url
        self._pool = pool
        self._in_child = in_child
        self._watched = b""  # the line that names the processes to send heartbeats for
        self._pid = 0
        self._to = self._from = -1
        self._complaint = ""

    def run(
        self,
        errand: Callable[..., FleetState],
        *arguments: object,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> FleetState | None:
        """Have an errand of this module done, and do something else meanwhile; None when it
        could not be done."""
        line = jsontext.dumps([errand.__name__, *arguments]).encode() + b"\n"
        for _ in range(TRIES):
            sent = self._send(line)
            meanwhile()
            said = sent and read_line(self._from)
            if said:
                return self._heard(jsontext.loads(said.decode()))
            self.dismiss()
        return None

    def watch(self, processes: Sequence[tuple[int, str]], settings: model.PoolSettings) -> None:
        """From now on send heartbeats for these workers while their processes run."""
        times = (settings.heartbeat_seconds, settings.start_deadline_seconds)
        self._watched = jsontext.dumps([WATCH, processes, *times]).encode() + b"\n"
        if self._pid:
            self._write(self._watched)

    def _heard(self, said: Any) -> FleetState | None:
        """Its answer; a complaint is logged once, however often the errand is tried again."""
        if not isinstance(said, str):
            self._complaint = ""
            return _orders(said)
        if said != self._complaint:
            sys.stderr.write(f"sprat: {said}\n")
            sys.stderr.flush()
        self._complaint = said
        return None

    def dismiss(self) -> None:
        """Let it close the store and leave."""
        if self._pid:
            self._write(FAREWELL)
            self.forget()
            try:
                os.waitpid(self._pid, 0)
            except ChildProcessError:
                pass  # the user's code waits for children too
            self._pid = 0

    def ended(self, pid: int) -> None:
        """The nest met this process among its workers: was it this one?"""
        if pid == self._pid:
            self.forget()
            self._pid = 0

    def forget(self) -> None:
        """In a worker: the clerk is not ours, and has to notice when the nest is gone."""
        if self._to >= 0:
            os.close(self._to)
            os.close(self._from)
            self._to = self._from = -1

    def tell(self, number: int) -> None:
        """Pass a signal on: nobody wants this nest to be followed by another."""
        if self._pid:
            try:
                os.kill(self._pid, number)
            except ProcessLookupError:
                pass

    def _send(self, line: bytes) -> bool:
        if not self._pid:
            self._begin()
        return self._write(line)

    def _write(self, line: bytes) -> bool:
        try:
            while line:
                line = line[os.write(self._to, line) :]
        except BrokenPipeError:
            return False
        return True

    def _begin(self) -> None:
        read, self._to = os.pipe()
        self._from, write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            self.forget()
            self._in_child()
            _serve(self._url, self._pool, read, write)
        os.close(read)
        os.close(write)
        if self._watched:
            self._write(self._watched)


def _orders(said: Any) -> FleetState:
    settings, version, launch, wake_in, led = said
    return FleetState(
        settings=model.PoolSettings.of(settings),
        version=version,
        launch=tuple(launch),
        wake_in=wake_in,
        led=led,
    )


# -- errands ------------------------------------------------------------------------------------


def begin(store: Store, pool: str, worker_ids: Sequence[str]) -> FleetState:
    if worker_ids:
        state = store.pool(pool).state()
        return FleetState(
            settings=state.settings,
            version=state.version,
            launch=tuple(worker_ids),
            wake_in=_wake_in(store, pool, state.settings, worker_ids),
        )
    return carry_on(store, pool, [], None)


def carry_on(
    store: Store,
    pool: str,
    gone: Sequence[tuple[str, str]],
    version: int | None,
    order: str | None = None,
    ours: Sequence[str] = (),
    called_ago: float = 0.0,
    led: int = 0,
) -> FleetState:
    """Report the dead, and run a scaling pass, unless a controller does that. If the pool's
    settings changed, this nest has the wrong code for new workers: another one is started for
    them. A nest that runs a machine keeps to the maximum that it was launched with."""
    report(store, pool, gone)
    lease = store.backend.document(controller_lease.KIND, controller_lease.name_of(pool, None))
    if lease is not None:
        return _leave_to_controller(store, pool, lease.version, led)
    state = store.pool(pool).state()
    checked = checker.decide(store, pool, _limited(state.settings, order))
    launch = checked.spawned_ids
    if launch and version not in (None, state.version):
        starter = None if order is None else OrderedLauncher(order)
        checker.launch(store, pool, state.settings, launch, starter)
        launch = ()
    return FleetState(
        settings=state.settings,
        version=state.version,
        launch=launch,
        wake_in=_wake_in(store, pool, state.settings, (*ours, *launch), called_ago),
    )


def _leave_to_controller(store: Store, pool: str, version: int, led: int) -> FleetState:
    """A controller that renewed its lease since the nest first looked is alive."""
    waits = led in (0, version) and store.pool(pool).size() > 0
    orders = _nothing_more(store, pool, CONTROLLER_SECONDS if waits else None)
    return orders.replace(led=version)


def _limited(settings: model.PoolSettings, order: str | None) -> model.PoolSettings:
    most = None if order is None else jsontext.loads(order)["max_workers"]
    high = settings.max_workers if most is None else min(most, settings.max_workers)
    return settings.replace(max_workers=high, min_workers=min(settings.min_workers, high))


def report(store: Store, pool: str, gone: Sequence[tuple[str, str]]) -> FleetState:
    """Say who did not leave in good order, so that their items are free at once."""
    lost = [store.workers.update_status(w, model.LOST, reason=how) for w, how in gone if how]
    orders = _nothing_more(store, pool)
    if any(lost):
        store.happened(model.WORKER_LOST, pool, orders.settings)
        store.happened(model.POOL_EMPTY, pool, orders.settings)  # if that was its last attempt
    return orders


def _nothing_more(store: Store, pool: str, wake_in: float | None = None) -> FleetState:
    state = store.pool(pool).state()
    return FleetState(settings=state.settings, version=state.version, launch=(), wake_in=wake_in)


def give_up(store: Store, pool: str, worker_ids: Sequence[str], why: str) -> FleetState:
    """The launch failed; it may be worth another try later."""
    checker.give_up(store, worker_ids, why)
    settings = store.pool(pool).state().settings
    return _nothing_more(store, pool, _wake_in(store, pool, settings))


def call_off(store: Store, pool: str, worker_ids: Sequence[str], why: str) -> FleetState:
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
    seen = policy_input.observe(store, pool, settings)
    return attendance.look_again_in(seen, settings, ours=ours, called_ago=called_ago)


ERRANDS: dict[str, Callable[..., FleetState]] = {
    errand.__name__: errand for errand in (begin, carry_on, report, give_up, call_off)
}


# -- in the clerk's process ---------------------------------------------------------------------


def _serve(url: str, pool: str, read: int, write: int) -> None:
    """Run errands until the nest says farewell, or is gone. What cannot be done is answered with
    why."""
    code = 1
    told_to_leave: list[int] = []
    try:
        for number in STOP_SIGNALS:  # they are for the workers; this one goes with its nest
            signal.signal(number, lambda told, _: told_to_leave.append(told))
        store = open_store(url)
        pulse = ParentHeartbeat(store.backend)
        while (line := pulse.line(read)) not in (FAREWELL, b""):
            name, *arguments = jsontext.loads(line.decode())
            if name == WATCH:
                pulse.watch(*arguments)
            else:
                _answer(write, _do(store, pool, name, arguments))
        if not line and not told_to_leave:
            _succeed(store, pool, pulse.preparing)
        store.close()
        code = 0
    except SpratError as error:
        _answer(write, str(error))
    except Exception:  # noqa: BLE001  (the top of the process: os._exit would keep it quiet)
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _succeed(store: Store, pool: str, prepared: Sequence[str]) -> None:
    """The nest was killed. What it was about to launch has failed (its user code may have killed
    it), and the work that waits needs another nest."""
    if prepared:
        checker.give_up(store, prepared, "the process that imports the handler ended")
    if store.pool(pool).size():
        settings = store.pool(pool).state().settings
        start_nest(store.url, pool, settings, order=os.environ.get(ORDER))


def _do(store: Store, pool: str, name: str, arguments: Sequence[Any]) -> FleetState | str:
    try:
        return ERRANDS[name](store, pool, *arguments)
    except SpratError as error:
        return str(error)


def _answer(write: int, answer: FleetState | str) -> None:
    line = jsontext.dumps(answer).encode() + b"\n"
    while line:
        line = line[os.write(write, line) :]
