"""A nest: a small process that has nothing to do but to fork workers and to see them end.

It imports the user's code once, so that a worker costs a few milliseconds. It has one thread and
never opens the store: a connection that goes through a fork is broken. Whatever is to be done there
a short-lived fork of the nest does, the *clerk*: report a worker that was killed, so that its items
are free at once, and run the next scaling pass when a worker leaves while work remains. The nest
ends with its last worker: when there is no work, nothing of ours runs. While items are delayed
(a retry that waits for its time), one nest a machine sleeps until they are due.

    python -m sprat.launchers.nest POOL [WORKER_ID ...]      the store's URL is in SPRAT_URL
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from sprat import checker, model
from sprat.errors import InvalidInput, SpratError
from sprat.launchers.process import start_nest
from sprat.processor import load
from sprat.record import Record
from sprat.scaling.queue_depth import pause_left
from sprat.store import open_store
from sprat.worker import ENOUGH, Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sprat.processor import Processor
    from sprat.store import Store

WORK_MAY_REMAIN = 3  # the exit code of a worker that left although it could have gone on
LONGEST_SLEEP_SECONDS = 3600.0  # for a delayed item; a trigger has to wake what comes later


class Orders(Record):
    """What the clerk brings back from the store."""

    settings: model.PoolSettings
    version: int
    launch: tuple[str, ...]
    wake_in: float | None  # seconds until there may be something to do, None: there is nothing


class Nest:
    def __init__(self, url: str, pool: str) -> None:
        self._url = url
        self._pool = pool
        self._children: dict[int, str] = {}
        self._told_to_leave = False
        self._version = 0

    def run(self, worker_ids: list[str]) -> int:
        signal.signal(signal.SIGTERM, self._pass_on)
        signal.signal(signal.SIGINT, self._pass_on)
        orders = self._clerk(lambda store: begin(store, self._pool, worker_ids))
        if orders is None:
            return 1
        self._version = orders.version
        try:
            processor = load(orders.settings)
        except SpratError as error:
            why = str(error)
            self._clerk(lambda store: give_up(store, self._pool, orders.launch, why))
            return 1
        _freeze()
        return self._tend(processor, orders)

    def _tend(self, processor: Processor, orders: Orders | None) -> int:
        while orders is not None:
            for worker_id in orders.launch:
                self._fork(processor, orders.settings, worker_id)
            if not self._children and not self._sleep(orders.wake_in):
                return 0
            orders = self._clerk(self._carry_on(self._gone() if self._children else []))
            if self._told_to_leave and orders is not None:
                orders = orders.replace(wake_in=None)
        return 1

    def _carry_on(self, gone: list[tuple[str, str]]) -> Callable[[Store], Orders]:
        return lambda store: carry_on(store, self._pool, gone, self._version)

    def _fork(self, processor: Processor, settings: model.PoolSettings, worker_id: str) -> None:
        pid = os.fork()
        if pid == 0:
            _be_a_worker(self._url, self._pool, processor, settings, worker_id)
        self._children[pid] = worker_id

    def _gone(self) -> list[tuple[str, str]]:
        """Wait until a worker has ended that somebody has to do something about, or all have:
        (worker, how it ended; nothing to say about one that left in good order)."""
        gone: list[tuple[str, str]] = []
        matters = False
        while self._children and not matters:
            pid, status = os.waitpid(-1, 0)
            while pid:
                code = os.waitstatus_to_exitcode(status)
                gone.append((self._children.pop(pid), _how(code)))
                matters = matters or code != 0
                pid, status = _waitpid_now() if self._children else (0, 0)
        return gone

    def _sleep(self, seconds: float | None) -> bool:
        """Nobody works here now. Wait for delayed items, unless another nest does."""
        if seconds is None or seconds > LONGEST_SLEEP_SECONDS or self._told_to_leave:
            return False
        if not _is_the_one_who_waits(self._url, self._pool):
            return False
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._told_to_leave:
            time.sleep(min(0.5, max(0.0, end - time.monotonic())))
        return not self._told_to_leave

    def _clerk(self, errand: Callable[[Store], Any]) -> Orders | None:
        """Do something in the store, in a fork that ends with it."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            _be_the_clerk(self._url, errand, write)
        os.close(write)
        with open(read, "rb") as pipe:
            said = pipe.read()
        os.waitpid(pid, 0)
        if not said:
            return None
        settings, version, launch, wake_in = json.loads(said)
        return Orders(
            settings=model.PoolSettings.of(settings),
            version=version,
            launch=tuple(launch),
            wake_in=wake_in,
        )

    def _pass_on(self, number: int, _: object) -> None:
        self._told_to_leave = True
        for pid in list(self._children):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


# -- errands of the clerk -----------------------------------------------------------------------


def begin(store: Store, pool: str, worker_ids: list[str]) -> Orders:
    if worker_ids:
        state = store.pool(pool).state()
        return Orders(
            settings=state.settings, version=state.version, launch=tuple(worker_ids), wake_in=0.0
        )
    return carry_on(store, pool, [], None)


def carry_on(store: Store, pool: str, gone: list[tuple[str, str]], version: int | None) -> Orders:
    """Report the dead, and run a scaling pass. If the pool's settings changed, this nest has the
    wrong code for new workers: another one is started for them."""
    for worker_id, how in gone:
        if how:
            store.workers.update_status(worker_id, model.LOST, reason=how)
    state = store.pool(pool).state()
    checked = checker.decide(store, pool, state.settings)
    launch = checked.spawned_ids
    if launch and version not in (None, state.version):
        checker.launch(store, pool, state.settings, launch)
        launch = ()
    return Orders(
        settings=state.settings,
        version=state.version,
        launch=launch,
        wake_in=wake_in(store, pool),
    )


def give_up(store: Store, pool: str, worker_ids: tuple[str, ...], why: str) -> Orders:
    for worker_id in worker_ids:
        store.workers.update_status(worker_id, model.LOST, reason=why)
    state = store.pool(pool).state()
    return Orders(settings=state.settings, version=state.version, launch=(), wake_in=None)


def wake_in(store: Store, pool: str) -> float | None:
    """Seconds until a delayed item is due, or a failed launch may be tried again."""
    seen = store.pool(pool).observe()
    if seen.paused:
        return None
    if seen.counts.ready and seen.launch_failures:
        return max(0.1, pause_left(seen))
    return seen.next_due_seconds


# -- in the forks -------------------------------------------------------------------------------


def _be_the_clerk(url: str, errand: Callable[[Store], Orders], write: int) -> None:
    code = 1
    try:
        orders = errand(open_store(url))
        said = json.dumps(orders).encode()
        while said:
            said = said[os.write(write, said) :]
        code = 0
    except SpratError as error:
        sys.stderr.write(f"sprat: {error}\n")
    finally:
        os._exit(code)  # closing the store would fold its log into the file, each time


def _be_a_worker(
    url: str, pool: str, processor: Processor, settings: model.PoolSettings, worker_id: str
) -> None:
    code = 1
    nest = os.getppid()
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        worker = Worker(
            open_store(url),
            pool,
            processor,
            settings=settings,
            worker_id=worker_id,
            reserved=True,
        )
        report = worker.run()
        code = WORK_MAY_REMAIN if report.left == ENOUGH else 0
        if code and os.getppid() != nest:
            start_nest(url, pool, settings)  # nobody is left to carry on
    except SpratError as error:
        sys.stderr.write(f"sprat: {error}\n")
    finally:
        _flush()
        os._exit(code)


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


def _waitpid_now() -> tuple[int, int]:
    return os.waitpid(-1, os.WNOHANG)


def _how(code: int) -> str:
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return "" if code in (0, WORK_MAY_REMAIN) else f"exited with code {code}"


def _is_the_one_who_waits(url: str, pool: str) -> bool:
    """One nest a machine and pool is enough; the lock goes with the process."""
    import fcntl
    import hashlib
    import tempfile

    name = hashlib.sha256(f"{url} {pool}".encode()).hexdigest()[:24]
    path = os.path.join(tempfile.gettempdir(), f"sprat-{os.getuid()}-{name}.wait")
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return False
    return True


def main() -> int:
    url = os.environ.get("SPRAT_URL", "")
    if len(sys.argv) < 2 or not url:
        raise InvalidInput("usage: python -m sprat.launchers.nest POOL [WORKER_ID ...]")
    return Nest(url, sys.argv[1]).run(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
