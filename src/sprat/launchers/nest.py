"""A nest: a small process that has nothing to do but to fork workers and to see them end.

It imports the user's code once, so that a worker costs a few milliseconds. It has one thread and
never opens the store: a connection that goes through a fork is broken. Whatever is to be done there
its *clerk* does (see clerk.py): report a worker that was killed, so that its items are free at
once, and run the next scaling pass when a worker leaves while work remains. The nest ends with its
last worker: when there is no work, nothing of ours runs. While items are delayed (a retry that
waits for its time), one nest a machine sleeps until they are due (see vigil.py).

Where a fork is not safe (on macOS, or when the user's code has started threads), each worker is a
fresh process that imports the code itself; all else is the same.

A worker that was told to leave (a scaler, a signal) causes no pass: it would only bring back what
somebody wanted gone.

    python -m sprat.launchers.nest POOL [WORKER_ID ...]      the store's URL is in SPRAT_URL
"""

from __future__ import annotations

import os
import signal
import sys
import time

from sprat import model
from sprat.errors import InvalidInput, SpratError
from sprat.launchers.clerk import Clerk, begin, call_off, carry_on, give_up, report
from sprat.launchers.process import ORDER, start_nest
from sprat.launchers.vigil import Vigil
from sprat.signals import STOP_SIGNALS
from sprat.store import open_store, preload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sprat.launcher import Crew
    from sprat.launchers.clerk import Orders
    from sprat.processor import Processor
    from sprat.store import Store

# Exit codes of workers in good order. A job that runs in its worker may end it with any other.
LEFT = 90
WAS_TOLD_TO = 91

LOOK_SECONDS = 0.05  # for workers that ended, while there is also a time to wait for
STORE_TRIES = 60  # a second apart: so long a nest outlasts a store that cannot be reached
FLOCK_SECONDS = 0.005  # workers seldom leave alone: one pass for all who do so together
LONGEST_NAP_SECONDS = 60.0  # then it looks whether there is still something to wait for
LONGEST_SLEEP_SECONDS = 3600.0  # for a delayed item; a trigger has to wake what comes later


class Nest:
    def __init__(self, url: str, pool: str) -> None:
        self._url = url
        self._pool = pool
        self._clerk = Clerk(url, pool)
        self._vigil = Vigil(url, pool)
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
                orders = self._send(carry_on, gone, self._version, self._order)

    def _send(
        self,
        errand: Callable[..., Orders],
        *arguments: object,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> Orders | None:
        """Send the clerk, again and again while the store cannot be reached."""
        for _ in range(STORE_TRIES):
            orders = self._clerk.run(errand, *arguments, meanwhile=meanwhile)
            if orders is not None or self._told_to_leave:
                return orders
            time.sleep(1.0)
        return None

    # -- workers ----------------------------------------------------------------------------

    def _hatch(self, orders: Orders) -> Orders | None:
        """Fork the workers that were ordered, or say why there will be none."""
        if self._told_to_leave:
            return self._send(call_off, orders.launch, "its nest was told to leave")
        try:
            processor = self._processor or self._load(orders)
        except SpratError as error:
            self._cannot_load = True
            return self._send(give_up, orders.launch, str(error))
        start = self._fork if _may_fork() else self._start_fresh
        for worker_id in orders.launch:
            start(processor, orders.settings, worker_id)
        return orders

    def _load(self, orders: Orders) -> Processor | Crew:
        self._processor = _loaded(orders.settings)
        self._version = orders.version
        _freeze()
        return self._processor

    def _fork(
        self, processor: Processor | Crew, settings: model.PoolSettings, worker_id: str
    ) -> None:
        # Signals wait until it is known to whom they are passed on, and who acts on them.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        pid = os.fork()
        if pid == 0:
            self._clerk.forget()
            _be_a_worker(self._url, self._pool, processor, settings, worker_id)
        self._children[pid] = worker_id
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def _start_fresh(self, _: object, settings: model.PoolSettings, worker_id: str) -> None:
        begin = "from sprat.launchers.nest import be_fresh; be_fresh()"
        command = [sys.executable, "-P", "-c", begin, self._pool, worker_id]
        environment = {**os.environ, "SPRAT_URL": self._url}
        self._children[os.posix_spawn(command[0], command, environment)] = worker_id

    # -- waiting ----------------------------------------------------------------------------

    def _wait(self, seconds: float | None) -> list[tuple[str, str]] | None:
        """Wait until workers have ended, or it is time to look: who ended and how (nothing to
        say about one that left in good order). None: nobody is left, and there is no reason."""
        if not self._children:
            return [] if self._sleep(seconds) else None
        gone: list[tuple[str, str]] = []
        until = None if seconds is None else time.monotonic() + seconds
        while self._children:
            pid, status = _next_exit(until)
            if not pid:
                return gone
            worker_id = self._children.pop(pid, None)
            code = os.waitstatus_to_exitcode(status)
            if worker_id is None:
                self._clerk.ended(pid)
            elif code != WAS_TOLD_TO:
                gone.append((worker_id, _how(code)))
                until = time.monotonic() + FLOCK_SECONDS
        return gone or None

    def _sleep(self, seconds: float | None) -> bool:
        """Nobody works here now. Wait for delayed items, unless another nest does."""
        if seconds is None or seconds > LONGEST_SLEEP_SECONDS or self._told_to_leave:
            return False
        self._clerk.dismiss()
        nap = min(seconds, LONGEST_NAP_SECONDS)
        return self._vigil.keep(nap, lambda: self._told_to_leave) and not self._told_to_leave

    def _pass_on(self, number: int, _: object) -> None:
        self._told_to_leave = True
        self._clerk.tell(number)
        for pid in list(self._children):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


def _import_the_rest() -> None:
    """What only workers need is imported here, once for all of them, and while the clerk is in
    the store: a push waits for it."""
    import fcntl  # noqa: F401

    import sprat.child
    import sprat.pulse
    import sprat.scale_set
    import sprat.worker  # noqa: F401


def _may_fork() -> bool:
    """A forked child has only the thread that forked, and the locks of all the others."""
    if sys.platform == "darwin":
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        threading = sys.modules.get("threading")
        return threading is None or threading.active_count() == 1


# -- in the workers' processes ------------------------------------------------------------------


def be_fresh() -> None:
    """A worker that was not forked: reads the settings and imports the user's code itself."""
    url, (pool, worker_id) = os.environ["SPRAT_URL"], sys.argv[1:]
    store = open_store(url)
    try:
        settings = store.pool(pool).state().settings
        processor = _loaded(settings)
    except SpratError as error:
        store.workers.update_status(worker_id, model.LOST, reason=str(error))
        raise SystemExit(1) from None
    store.close()
    _be_a_worker(url, pool, processor, settings, worker_id)


def _be_a_worker(
    url: str,
    pool: str,
    processor: Processor | Crew,
    settings: model.PoolSettings,
    worker_id: str,
) -> None:
    from sprat.child import finish_triggers
    from sprat.worker import TOLD_TO

    code = 1
    nest = os.getppid()
    try:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        store = open_store(url)
        was_told_to = _work(store, pool, processor, settings, worker_id) == TOLD_TO
        code = WAS_TOLD_TO if was_told_to else LEFT
        if os.getppid() != nest and not was_told_to and store.pool(pool).size():
            order = os.environ.get(ORDER)
            start_nest(url, pool, settings, order=order)  # nobody else is left to carry on
        finish_triggers()
    except SpratError as error:
        sys.stderr.write(f"sprat: {error}\n")
    except Exception:  # noqa: BLE001  (the top of the process: os._exit would keep it quiet)
        _complain()
    finally:
        _flush()
        os._exit(code)


def _loaded(settings: model.PoolSettings) -> Processor | Crew:
    """What the workers of this nest run: the pool's processor, or the machine of an order. On
    another machine than the one where the pool was set up, the code may be elsewhere."""
    settings = settings.replace(directory=os.environ.get("SPRAT_DIRECTORY", settings.directory))
    order = os.environ.get(ORDER)
    if order is not None:
        from sprat.machine_room.crew import MachineCrew

        return MachineCrew(order, settings)
    from sprat.processor import load

    return load(settings)


def _work(
    store: Store,
    pool: str,
    processor: Processor | Crew,
    settings: model.PoolSettings,
    worker_id: str,
) -> str:
    if not callable(processor):
        return processor.work(store, pool, settings, worker_id)
    from sprat.worker import Worker

    worker = Worker(store, pool, processor, settings=settings, worker_id=worker_id, reserved=True)
    return worker.run().left


def _complain() -> None:
    import traceback

    traceback.print_exc()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def _freeze() -> None:
    """Keep the garbage collector from touching (and so copying) what the forks share."""
    import gc

    gc.collect()
    gc.freeze()


def _next_exit(until: float | None) -> tuple[int, int]:
    """The next child that ended, as waitpid tells it; zeros when it is time."""
    if until is None:
        return os.waitpid(-1, 0)
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        left = until - time.monotonic()
        if pid or left <= 0:
            return pid, status
        time.sleep(min(LOOK_SECONDS, left))


def _how(code: int) -> str:
    if code < 0:
        from sprat.child import signal_name

        return f"ended by {signal_name(-code)}"
    return "" if code in (LEFT, WAS_TOLD_TO) else f"exited with code {code}"


def main() -> int:
    url = os.environ.get("SPRAT_URL", "")
    if len(sys.argv) < 2 or not url:
        raise InvalidInput("usage: python -m sprat.launchers.nest POOL [WORKER_ID ...]")
    return Nest(url, sys.argv[1]).run(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
