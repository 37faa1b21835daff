"""A nest: a small process that has nothing to do but to fork workers and to see them end.

It imports the user's code once, so that a worker costs a few milliseconds. It has one thread and
never opens the store: a connection that goes through a fork is broken. Whatever is to be done there
its *clerk* does (see store_proxy.py): report a worker that was killed, so that its items are free
at once, and run the next scaling pass when a worker leaves while work remains. The nest ends with
its last worker: when there is no work, no process runs.

A nest also *attends* to its pool: it stays while work waits that is not sure to be taken (see
attendance.py): workers of the store may be dead, items delayed, launches failing. One nest per pool
and machine waits for that, the others leave it to that one. doorbell.py is how a push finds it.

Where a fork is not safe (on macOS, or when the user's code has started threads), each worker is a
fresh process that imports the code itself; all else is the same.

A worker that was told to leave (a scaler, a signal) causes no pass: it would only bring back what
somebody wanted gone.

    python -m sprat.launchers.process.fork_server POOL [WORKER_ID ...]

The store's URL is in SPRAT_URL.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from sprat.core.errors import InvalidInput, SpratError
from sprat.launchers.process.child_exits import ChildExits
from sprat.launchers.process.doorbell import Doorbell, ring
from sprat.launchers.process.forked_worker import (
    CODE_CHANGED,
    LEFT,
    WAS_TOLD_TO,
    be_a_worker,
    loaded,
)
from sprat.launchers.process.launcher import ORDER, start_nest
from sprat.launchers.process.store_proxy import (
    FleetState,
    StoreProxy,
    begin,
    call_off,
    carry_on,
    give_up,
    report,
)
from sprat.store.open_store import preload
from sprat.worker.signals import STOP_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sprat.fleet.launcher import Crew
    from sprat.worker.processor import Processor

LOOK_SECONDS = 1.0  # for workers that ended, should user code have taken their signals
RING_SECONDS = 1.0  # after a ring a worker takes the job, or the nest looks; and between two looks
STORE_TRIES = 60  # a second apart: so long a nest outlasts a store that cannot be reached
FLOCK_SECONDS = 0.005  # workers seldom leave alone: one pass for all who do so together
LONGEST_NAP_SECONDS = 60.0  # then it looks whether there is still something to wait for
LONGEST_SLEEP_SECONDS = 3600.0  # for a delayed item; a trigger has to wake what comes later


class ForkServer:
    def __init__(self, url: str, pool: str) -> None:
        self._url = url
        self._pool = pool
        self._doorbell = Doorbell(url, pool)
        self._exits = ChildExits()
        self._clerk = StoreProxy(url, pool, in_child=self._let_go)
        self._called_at = self._looked_at = time.monotonic()
        self._rung_at: float | None = None  # the first ring that was not answered yet
        self._children: dict[int, str] = {}
        self._told_to_leave = False
        self._processor: Processor | Crew | None = None
        self._cannot_load = False
        self._version: int | None = None  # of the settings that the processor was made from
        self._order = os.environ.get(ORDER)

    def run(self, worker_ids: list[str]) -> int:
        for number in STOP_SIGNALS:
            signal.signal(number, self._pass_on)
        preload(self._url)
        try:
            self._run(worker_ids)
            return 0
        except SpratError as error:  # the next push or check makes good
            sys.stderr.write(f"sprat: {error}\n")
            return 1
        finally:
            self._clerk.dismiss()

    def _run(self, worker_ids: list[str]) -> None:
        orders = self._send(begin, worker_ids, meanwhile=_import_the_rest)
        while orders is not None:
            if orders.launch:
                orders = self._hatch(orders)
            gone = None if orders is None else self._wait(orders.wake_in)
            if orders is None or gone is None:
                break
            if self._cannot_load:  # with all that was half imported, trying again proves nothing
                start_nest(self._url, self._pool, orders.settings, order=self._order)
                break
            if self._told_to_leave:
                orders = self._send(report, gone)
            else:
                orders = self._look(gone, orders.led)

    def _look(self, gone: list[tuple[str, str]], led: int) -> FleetState | None:
        """Run a pass; a nest that finds something to do takes calls again."""
        self._looked_at = time.monotonic()
        ours = list(self._children.values())
        called_ago = time.monotonic() - self._called_at
        orders = self._send(carry_on, gone, self._version, self._order, ours, called_ago, led)
        if orders is not None and (orders.launch or _is_soon(orders.wake_in)):
            self._doorbell.open()
        return orders

    def _send(
        self,
        errand: Callable[..., FleetState],
        *arguments: object,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> FleetState | None:
        """Send the clerk, again and again while the store cannot be reached."""
        for _ in range(STORE_TRIES):
            orders = self._clerk.run(errand, *arguments, meanwhile=meanwhile)
            if orders is not None or self._told_to_leave:
                return orders
            time.sleep(1.0)
        return None

    # -- workers ----------------------------------------------------------------------------

    def _hatch(self, orders: FleetState) -> FleetState | None:
        """Fork the workers that were ordered, or say why there will be none."""
        if self._told_to_leave:
            return self._send(call_off, orders.launch, "its nest was told to leave")
        self._watch(orders, orders.launch)
        try:
            processor = self._processor or self._load(orders)
        except SpratError as error:
            self._cannot_load = True
            return self._send(give_up, orders.launch, str(error))
        start = self._fork if _may_fork() else self._start_fresh
        for worker_id in orders.launch:
            start(processor, orders, worker_id)
        self._watch(orders)
        return orders

    def _watch(self, orders: FleetState, launch: Sequence[str] = ()) -> None:
        """Name the processes that the clerk sends heartbeats for: the workers, and this one for
        the launches that it prepares."""
        preparing = [(os.getpid(), worker_id) for worker_id in launch]
        self._clerk.watch([*self._children.items(), *preparing], orders.settings)

    def _load(self, orders: FleetState) -> Processor | Crew:
        self._processor = loaded(orders.settings)
        self._version = orders.version
        _freeze()
        return self._processor

    def _fork(self, processor: Processor | Crew, orders: FleetState, worker_id: str) -> None:
        # Signals wait until it is known to whom they are passed on, and who acts on them.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        pid = os.fork()
        if pid == 0:
            self._clerk.forget()
            self._let_go()
            be_a_worker(self._url, self._pool, processor, orders, worker_id)
        self._children[pid] = worker_id
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def _let_go(self) -> None:
        """In a child: it looks after nothing, and waits for its own children."""
        self._doorbell.close()
        self._exits.close()

    def _start_fresh(self, _: object, orders: FleetState, worker_id: str) -> None:
        begin = "from sprat.launchers.process.forked_worker import be_fresh; be_fresh()"
        command = [sys.executable, "-P", "-c", begin, self._pool, worker_id]
        environment = {**os.environ, "SPRAT_URL": self._url}
        self._children[os.posix_spawn(command[0], command, environment)] = worker_id

    # -- waiting ----------------------------------------------------------------------------

    def _wait(self, seconds: float | None) -> list[tuple[str, str]] | None:
        """Wait until workers have ended, or it is time to look: who ended and how (nothing to
        say about one that left in good order). None: no worker is left, and no reason to stay."""
        if not self._children:
            return [] if self._sleep(seconds) or self._takes_leave() else None
        gone: list[tuple[str, str]] = []
        until = None if seconds is None else time.monotonic() + seconds
        while self._children:
            pid, status = self._next_exit(until)
            if not pid:
                return gone
            worker_id = self._children.pop(pid, None)
            code = os.waitstatus_to_exitcode(status)
            if worker_id is None:
                self._clerk.ended(pid)
                continue
            if code == CODE_CHANGED:
                self._version = -1  # no version at all: new workers need another nest
            if code != WAS_TOLD_TO:
                gone.append((worker_id, _how(code)))
                until = time.monotonic() + FLOCK_SECONDS
        return gone or ([] if self._is_called() and self._takes_leave() else None)

    def _next_exit(self, until: float | None) -> tuple[int, int]:
        """The next child that ended, as waitpid tells it; zeros when it is time to look."""
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                return pid, status
            rung = None if self._rung_at is None else self._rung_at + RING_SECONDS
            due = min((moment for moment in (until, rung) if moment is not None), default=None)
            now = time.monotonic()
            if due is not None and now >= due:
                self._rung_at = None
                return 0, 0
            left = LOOK_SECONDS if due is None else min(due - now, LOOK_SECONDS)
            self._exits.wait(left, self._doorbell.descriptor if rung is None else -1)
            if rung is None and self._doorbell.silence():
                self._called_at = self._rung_at = time.monotonic()

    def _sleep(self, seconds: float | None) -> bool:
        """No worker is left here. Wait for what is to come, unless another nest does."""
        if seconds is None or not _is_soon(seconds) or self._told_to_leave:
            return False
        if not self._doorbell.is_first():
            self._doorbell.close()
            return not ring(self._url, self._pool)  # it may not know of what is to come
        self._clerk.dismiss()
        if self._doorbell.wait(min(seconds, LONGEST_NAP_SECONDS), lambda: self._told_to_leave):
            time.sleep(max(0.0, self._looked_at + RING_SECONDS - time.monotonic()))
            self._doorbell.silence()
            self._called_at = time.monotonic()
        return not self._told_to_leave

    def _is_called(self) -> bool:
        """Whether a push waits for an answer. Without one, a nest whose workers were told to leave
        starts no others."""
        return self._rung_at is not None or self._doorbell.silence()

    def _takes_leave(self) -> bool:
        """Take no more calls, and say whether to look once more: a push may have relied on this
        nest a moment ago."""
        is_open = self._doorbell.descriptor >= 0 and not self._told_to_leave
        self._doorbell.close()
        return is_open

    def _pass_on(self, number: int, _: object) -> None:
        self._told_to_leave = True
        self._clerk.tell(number)
        for pid in list(self._children):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


def _is_soon(seconds: float | None) -> bool:
    """Whether a nest waits for what is to come then."""
    return seconds is not None and seconds <= LONGEST_SLEEP_SECONDS


def _import_the_rest() -> None:
    """What only workers need is imported here, once for all of them, and while the clerk is in
    the store: a push waits for it."""
    import fcntl  # noqa: F401

    import sprat.fleet.controller_lease
    import sprat.worker.heartbeat_thread
    import sprat.worker.job_process
    import sprat.worker.worker  # noqa: F401


def _may_fork() -> bool:
    """A forked child has only the thread that forked, and the locks of all the others."""
    if sys.platform == "darwin":
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        threading = sys.modules.get("threading")
        return threading is None or threading.active_count() == 1


def _freeze() -> None:
    """Keep the garbage collector from touching (and so copying) what the forks share."""
    import gc

    gc.collect()
    gc.freeze()


def _how(code: int) -> str:
    if code < 0:
        from sprat.worker.job_process import signal_name

        return f"ended by {signal_name(-code)}"
    return "" if code in (LEFT, WAS_TOLD_TO, CODE_CHANGED) else f"exited with code {code}"


def main() -> int:
    url = os.environ.get("SPRAT_URL", "")
    if len(sys.argv) < 2 or not url:
        raise InvalidInput(
            "usage: python -m sprat.launchers.process.fork_server POOL [WORKER_ID ...]"
        )
    return ForkServer(url, sys.argv[1]).run(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
