"""The fork server: a small process that forks the workers of one pool and waits for them.

It imports the user's code once, so that a worker costs a few milliseconds. It has one thread and
never opens the store: a connection that goes through a fork is broken. Its *store proxy*, a child,
does what has to be done there (see store_proxy.py): report a worker that was killed, so that its
items are free at once, and run the next scaling pass when a worker leaves while work remains. The
fork server ends with its last worker: when there is no work, no process runs.

A fork server is also the *attendant* of its pool: it stays while work waits that is not certain to
be taken (see attendant.py), because workers of the store may be dead, items delayed, launches
failing. One fork server per pool and machine waits for that; the others leave it to that one. A
push finds it by its wake-up pipe (see wake_pipe.py).

Where a fork is not safe (on macOS, or when the user's code has started threads), each worker is a
new process that imports the code itself; all else is the same.

A worker that was told to leave (by a scaler, a signal) causes no pass: the pass would launch a
replacement for it.

    python -m sprat.launchers.process.fork_server POOL [WORKER_ID ...]

The store's URL is in SPRAT_URL.
"""

from __future__ import annotations

import os
import signal
import sys

from sprat.core.errors import InvalidInput, SpratError
from sprat.core.runtime import runtime
from sprat.launchers.process.child_exits import ChildExits
from sprat.launchers.process.forked_worker import (
    CODE_CHANGED,
    LEFT,
    WAS_TOLD_TO,
    load_processor,
    run_worker,
)
from sprat.launchers.process.launcher import MACHINE, start_fork_server
from sprat.launchers.process.proxy_requests import (
    FleetState,
    begin,
    cancel_launch,
    give_up,
    report_exits,
    run_pass,
)
from sprat.launchers.process.store_proxy import StoreProxy
from sprat.launchers.process.wake_pipe import WakePipe, wake
from sprat.store.open_store import preload
from sprat.worker.signals import STOP_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sprat.fleet.launcher import Crew
    from sprat.worker.processor import Processor

LOOK_SECONDS = 1.0  # for workers that ended, should user code have taken their signals
WAKE_SECONDS = 1.0  # until a worker takes the job of a wake-up, or a pass runs; and between passes
STORE_TRIES = 60  # a second apart: how long a fork server waits for a store that is away
EXITS_SECONDS = 0.005  # workers seldom leave alone: one pass for all that leave within this
LONGEST_NAP_SECONDS = 60.0  # then it looks whether there is still something to wait for
LONGEST_SLEEP_SECONDS = 3600.0  # for a delayed item; a trigger has to wake what comes later


class ForkServer:
    """The fork server of one pool on this machine: `run` returns when it has nothing left to do."""

    def __init__(self, url: str, pool: str) -> None:
        self._url = url
        self._pool = pool
        self._wake_pipe = WakePipe(url, pool)
        self._exits = ChildExits()
        self._proxy = StoreProxy(url, pool, in_child=self._close_inherited)
        self._called_at = self._looked_at = runtime.monotonic()
        self._woken_at: float | None = None  # the first wake-up that no pass has followed yet
        self._children: dict[int, str] = {}
        self._is_stopping = False
        self._processor: Processor | Crew | None = None
        self._cannot_load = False
        self._version: int | None = None  # of the settings that the processor was made from
        self._machine = os.environ.get(MACHINE)

    def run(self, worker_ids: list[str]) -> int:
        for number in STOP_SIGNALS:
            signal.signal(number, self._forward_signal)
        preload(self._url)
        try:
            self._run(worker_ids)
            return 0
        except SpratError as error:  # the next push or check tries again
            sys.stderr.write(f"sprat: {error}\n")
            return 1
        finally:
            self._proxy.stop()

    def _run(self, worker_ids: list[str]) -> None:
        state = self._request(begin, worker_ids, meanwhile=_import_worker_modules)
        while state is not None:
            if state.launch:
                state = self._fork_workers(state)
            exits = None if state is None else self._wait(state.wake_in)
            if state is None or exits is None:
                break
            if self._cannot_load:  # with all that was half imported, trying again proves nothing
                start_fork_server(self._url, self._pool, state.settings, machine=self._machine)
                break
            if self._is_stopping:
                state = self._request(report_exits, exits)
            else:
                state = self._run_pass(exits, state.led)

    def _run_pass(self, exits: list[tuple[str, str]], led: int) -> FleetState | None:
        """Run a pass; a fork server that finds something to do accepts wake-ups again."""
        self._looked_at = runtime.monotonic()
        ours = list(self._children.values())
        called_ago = runtime.monotonic() - self._called_at
        state = self._request(run_pass, exits, self._version, self._machine, ours, called_ago, led)
        if state is not None and (state.launch or _is_soon(state.wake_in)):
            self._wake_pipe.open()
        return state

    def _request(
        self,
        operation: Callable[..., FleetState],
        *arguments: object,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> FleetState | None:
        """Have the store proxy do this, again and again while the store cannot be reached."""
        for _ in range(STORE_TRIES):
            state = self._proxy.request(operation, *arguments, meanwhile=meanwhile)
            if state is not None or self._is_stopping:
                return state
            runtime.sleep(1.0)
        return None

    # -- workers ----------------------------------------------------------------------------

    def _fork_workers(self, state: FleetState) -> FleetState | None:
        """Fork the workers of a launch, or report why there will be none."""
        if self._is_stopping:
            return self._request(cancel_launch, state.launch, "its fork server was told to leave")
        self._watch(state, state.launch)
        try:
            processor = self._processor or self._load(state)
        except SpratError as error:
            self._cannot_load = True
            return self._request(give_up, state.launch, str(error))
        start = self._fork if _may_fork() else self._spawn
        for worker_id in state.launch:
            start(processor, state, worker_id)
        self._watch(state)
        return state

    def _watch(self, state: FleetState, launch: Sequence[str] = ()) -> None:
        """Name the processes that the store proxy sends heartbeats for: the workers, and this one
        for the launches that it prepares."""
        preparing = [(os.getpid(), worker_id) for worker_id in launch]
        self._proxy.watch([*self._children.items(), *preparing], state.settings)

    def _load(self, state: FleetState) -> Processor | Crew:
        self._processor = load_processor(state.settings)
        self._version = state.version
        _freeze()
        return self._processor

    def _fork(self, processor: Processor | Crew, state: FleetState, worker_id: str) -> None:
        # A signal in between would reach neither the new worker nor a handler that forwards it.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        pid = runtime.fork()
        if pid == 0:
            self._proxy.close_pipes()
            self._close_inherited()
            run_worker(self._url, self._pool, processor, state, worker_id)
        self._children[pid] = worker_id
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def _close_inherited(self) -> None:
        """In a child: it attends to no pool, and waits for its own children."""
        self._wake_pipe.close()
        self._exits.close()

    def _spawn(self, _: object, state: FleetState, worker_id: str) -> None:
        begin = "from sprat.launchers.process.forked_worker import run_unforked; run_unforked()"
        command = [sys.executable, "-P", "-c", begin, self._pool, worker_id]
        environment = {**os.environ, "SPRAT_URL": self._url}
        self._children[runtime.spawn(command[0], command, environment)] = worker_id

    # -- waiting ----------------------------------------------------------------------------

    def _wait(self, seconds: float | None) -> list[tuple[str, str]] | None:
        """Wait until workers have ended, or it is time for a pass: the workers that ended, each
        with how (empty if it left in order). None: no worker is left, and no reason to stay."""
        if not self._children:
            return [] if self._sleep(seconds) or self._stops_listening() else None
        exits: list[tuple[str, str]] = []
        until = None if seconds is None else runtime.monotonic() + seconds
        while self._children:
            pid, status = self._next_exit(until)
            if not pid:
                return exits
            worker_id = self._children.pop(pid, None)
            code = os.waitstatus_to_exitcode(status)
            if worker_id is None:
                self._proxy.exited(pid)
                continue
            if code == CODE_CHANGED:
                self._version = -1  # no version at all: new workers need another fork server
            if code != WAS_TOLD_TO:
                exits.append((worker_id, _how(code)))
                until = runtime.monotonic() + EXITS_SECONDS
        return exits or ([] if self._is_called() and self._stops_listening() else None)

    def _next_exit(self, until: float | None) -> tuple[int, int]:
        """The next child that ended, as waitpid returns it; zeros when it is time for a pass."""
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                return pid, status
            pass_at = None if self._woken_at is None else self._woken_at + WAKE_SECONDS
            due = min((moment for moment in (until, pass_at) if moment is not None), default=None)
            now = runtime.monotonic()
            if due is not None and now >= due:
                self._woken_at = None
                return 0, 0
            left = LOOK_SECONDS if due is None else min(due - now, LOOK_SECONDS)
            self._exits.wait(left, self._wake_pipe.descriptor if pass_at is None else -1)
            if pass_at is None and self._wake_pipe.clear():
                self._called_at = self._woken_at = runtime.monotonic()

    def _sleep(self, seconds: float | None) -> bool:
        """No worker is left here. Wait for work to come, unless another fork server does."""
        if seconds is None or not _is_soon(seconds) or self._is_stopping:
            return False
        if not self._wake_pipe.is_first():
            self._wake_pipe.close()
            return not wake(self._url, self._pool)  # it may not know of that work
        self._proxy.stop()
        if self._wake_pipe.wait(min(seconds, LONGEST_NAP_SECONDS), lambda: self._is_stopping):
            runtime.sleep(max(0.0, self._looked_at + WAKE_SECONDS - runtime.monotonic()))
            self._wake_pipe.clear()
            self._called_at = runtime.monotonic()
        return not self._is_stopping

    def _is_called(self) -> bool:
        """Whether a push relies on this process. If none does, a fork server whose workers were
        told to leave starts no others."""
        return self._woken_at is not None or self._wake_pipe.clear()

    def _stops_listening(self) -> bool:
        """Accept no more wake-ups; whether one more pass is needed, because a push may have relied
        on this process a moment ago."""
        is_open = self._wake_pipe.descriptor >= 0 and not self._is_stopping
        self._wake_pipe.close()
        return is_open

    def _forward_signal(self, number: int, _: object) -> None:
        self._is_stopping = True
        self._proxy.send_signal(number)
        for pid in list(self._children):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


def _is_soon(seconds: float | None) -> bool:
    """Whether a fork server waits for work that is due then."""
    return seconds is not None and seconds <= LONGEST_SLEEP_SECONDS


def _import_worker_modules() -> None:
    """What only workers need is imported here, once for all of them, and while the store proxy is
    busy: a push waits for it."""
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
