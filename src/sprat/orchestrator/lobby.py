"""The lobby: where workers wait for work without a thread each.

Each pool that somebody waits for has one room with one thread, which sleeps in the store's own
`wait`. When there is work, the thread asks for one waiter of each set of capabilities whether the
work is for it, for the answer is the same for all others of that set, and wakes as many as there
are ready items. Who is told to leave is woken too: at once when that happened through this server,
within a second or so when it happened elsewhere.
"""

from __future__ import annotations

import asyncio
import threading

from sprat import model
from sprat.backend import Backend, WorkerRef
from sprat.errors import SpratError
from sprat.orchestrator.threads import Threads

LOOK_SECONDS = 1.0  # after so long in the store's wait, a room looks who has left
SHORTEST_PAUSE_SECONDS = 0.02  # after a round, so that those who were woken can claim
LONGEST_PAUSE_SECONDS = 1.0  # while there is work, but none for those who wait
MAX_ROOMS = 256  # threads; who waits for one more pool looks now and then
LOOK_AGAIN_SECONDS = 1.0


class Seat:
    """One waiter."""

    __slots__ = ("future", "loop", "ref")

    def __init__(self, ref: WorkerRef | None) -> None:
        self.ref = ref
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[bool] = self.loop.create_future()

    def wake(self, has_work: bool) -> None:
        """From any thread."""
        self.loop.call_soon_threadsafe(self._wake, has_work)

    def _wake(self, has_work: bool) -> None:
        if not self.future.done():
            self.future.set_result(has_work)


Set = tuple[str, ...] | None  # the capabilities that a waiter has; None: it is no worker


class Lobby:
    """All rooms of one server process."""

    def __init__(self, backend: Backend, threads: Threads) -> None:
        self._backend = backend
        self._threads = threads
        self._rooms: dict[str, Room] = {}
        self._is_closed = False

    async def wait(self, pool: str, ref: WorkerRef | None, seconds: float) -> bool:
        """As the verb `wait`, without blocking anything."""
        if await self._threads.run(self._backend.wait, pool, ref, 0.0):
            return True
        if seconds <= 0 or self._is_closed:
            return False
        kind: Set = None
        if ref is not None:
            worker = await self._threads.run(self._backend.worker, ref.worker_id)
            if not is_active(worker, ref):
                return False
            kind = tuple(sorted(worker.capabilities))
        if pool not in self._rooms and len(self._rooms) >= MAX_ROOMS:
            return await self._look_now_and_then(pool, ref, seconds)
        return await self._sit(pool, kind, Seat(ref), seconds)

    async def _sit(self, pool: str, kind: Set, seat: Seat, seconds: float) -> bool:
        room = self._rooms.setdefault(pool, Room(self._backend, pool))
        room.enter(kind, seat)
        try:
            async with asyncio.timeout(seconds):
                return await seat.future
        except TimeoutError:
            return False
        finally:
            room.leave(kind, seat)
            if room.is_empty():
                self._rooms.pop(pool, None)

    async def _look_now_and_then(self, pool: str, ref: WorkerRef | None, seconds: float) -> bool:
        end = asyncio.get_running_loop().time() + seconds
        while (left := end - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(min(left, LOOK_AGAIN_SECONDS))
            if await self._threads.run(self._backend.wait, pool, ref, 0.0):
                return True
        return False

    def changed(self, pool: str) -> None:
        """Something happened to the pool's items: do not pause, look."""
        room = self._rooms.get(pool)
        if room is not None:
            room.look()

    def told(self, worker_id: str) -> None:
        """Something happened to this worker: it may have to leave. Blocks; for a thread."""
        for room in list(self._rooms.values()):
            for kind, seat in room.seats():
                if seat.ref is not None and seat.ref.worker_id == worker_id:
                    room.check(kind, seat)

    def close(self) -> None:
        self._is_closed = True
        for room in list(self._rooms.values()):
            room.close()


class Room:
    """Those who wait for one pool, and the thread that watches it for them."""

    def __init__(self, backend: Backend, pool: str) -> None:
        self.pool = pool
        self._backend = backend
        self._lock = threading.Lock()
        self._sets: dict[Set, dict[Seat, None]] = {}
        self._look = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def enter(self, kind: Set, seat: Seat) -> None:
        with self._lock:
            self._sets.setdefault(kind, {})[seat] = None
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name=f"sprat-room-{self.pool}", daemon=True
                )
                self._thread.start()

    def leave(self, kind: Set, seat: Seat) -> None:
        with self._lock:
            seats = self._sets.get(kind, {})
            seats.pop(seat, None)
            if not seats:
                self._sets.pop(kind, None)

    def is_empty(self) -> bool:
        return not self._sets

    def look(self) -> None:
        self._look.set()

    def close(self) -> None:
        self._is_closed = True
        for _, seat in self.seats():
            seat.wake(False)
        self._look.set()

    def seats(self) -> list[tuple[Set, Seat]]:
        with self._lock:
            return [(kind, seat) for kind, seats in self._sets.items() for seat in seats]

    def check(self, kind: Set, seat: Seat) -> bool:
        """Wake a worker that has to leave; whether it had to."""
        if seat.ref is None:
            return False
        if is_active(self._backend.worker(seat.ref.worker_id), seat.ref):
            return False
        self.leave(kind, seat)
        seat.wake(False)
        return True

    # -- the thread -------------------------------------------------------------------------

    def _watch(self) -> None:
        pause = SHORTEST_PAUSE_SECONDS
        while not self._is_over():
            try:
                woken = self._round()
            except SpratError:
                woken = 0  # the store cannot be reached: its waiters find out when they ask
            if woken is None:
                continue
            pause = SHORTEST_PAUSE_SECONDS if woken else min(2 * pause, LONGEST_PAUSE_SECONDS)
            self._look.wait(pause)
            self._look.clear()

    def _is_over(self) -> bool:
        """Nobody waits any more: the next one makes a new thread."""
        with self._lock:
            if self._is_closed or not self._sets:
                self._thread = None
                return True
            return False

    def _round(self) -> int | None:
        """Look once; how many were woken, None when there was no work."""
        if not self._backend.wait(self.pool, None, LOOK_SECONDS):
            self._wake_leavers()
            return None
        ready = max(1, self._backend.counts(self.pool).ready)
        with self._lock:
            kinds = list(self._sets)
        return sum(self._wake(kind, ready) for kind in kinds)

    def _wake(self, kind: Set, ready: int) -> int:
        """Wake those of one set, if the work is for them."""
        woken = 0
        with self._lock:
            seats = list(self._sets.get(kind, ()))
        while seats and woken < ready:
            seat = seats.pop(0)
            if not woken and not self._backend.wait(self.pool, seat.ref, 0.0):
                if self.check(kind, seat):
                    continue  # this one has left; ask for another
                return 0
            self.leave(kind, seat)
            seat.wake(True)
            woken += 1
        return woken

    def _wake_leavers(self) -> None:
        which = model.WorkerFilter(status=model.TERMINATING)
        leaving = {worker.worker_id for worker in self._backend.workers(which)}
        if leaving:
            for kind, seat in self.seats():
                if seat.ref is not None and seat.ref.worker_id in leaving:
                    self.check(kind, seat)


def is_active(worker: model.WorkerRecord | None, ref: WorkerRef) -> bool:
    """Whether the worker may still claim."""
    return (
        worker is not None
        and worker.status == model.ACTIVE
        and ref.incarnation in (None, worker.incarnation)
    )
