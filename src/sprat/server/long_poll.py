"""The lobby: where workers wait for work without a thread each.

Each pool that somebody waits for has one room with one thread, which sleeps in the store's own
`wait`. When there is work, the thread asks for one waiter of each set of capabilities whether the
work is for it, for the answer is the same for all others of that set, and wakes as many as there
are ready items. Who is told to leave is woken too: at once when that happened through this server,
within a second or so when it happened elsewhere.

There are rooms for pools that exist, up to a number for each tenant and for all. A waiter without
a room looks once a second, and when something happened to its pool through this server.
"""

from __future__ import annotations

import asyncio
import threading

from sprat.core import model
from sprat.core.errors import SpratError
from sprat.server import quotas
from sprat.server.threads import Threads
from sprat.store.backend import Backend, WorkerRef

LOOK_SECONDS = 1.0  # after so long in the store's wait, a room looks who has left
SHORTEST_PAUSE_SECONDS = 0.02  # after a round, so that those who were woken can claim
LONGEST_PAUSE_SECONDS = 1.0  # while there is work, but none for those who wait
MAX_ROOMS = 256  # threads, of all tenants together
LOOK_AGAIN_SECONDS = 1.0  # of a waiter without a room


class Waiter:
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


class LongPolls:
    """All rooms of one server process."""

    def __init__(self, backend: Backend, threads: Threads, pools: quotas.KnownPools) -> None:
        self._backend = backend
        self._threads = threads
        self._pools = pools
        self._rooms: dict[str, PoolWatcher] = {}
        self._outside: dict[str, dict[Waiter, None]] = {}  # waiters without a room, by pool
        self._is_closed = False
        self._told = 0  # how often something happened to a worker

    async def wait(
        self, pool: str, ref: WorkerRef | None, seconds: float, tenant: str | None = None
    ) -> bool:
        """As the verb `wait`, without blocking anything. `tenant` is the caller's."""
        if await self._threads.run_for(tenant, self._backend.wait, pool, ref, 0.0):
            return True
        if seconds <= 0 or self._is_closed:
            return False
        kind: Set = None
        told = self._told  # before the look at the worker: what comes after it is noticed
        if ref is not None:
            worker = await self._threads.run_for(tenant, self._backend.worker, ref.worker_id)
            if not is_active(worker, ref):
                return False
            kind = tuple(sorted(worker.capabilities))
        end = asyncio.get_running_loop().time() + seconds
        while not await self._may_enter(pool, tenant):
            answer = await self._look_outside(pool, ref, end, tenant)
            if answer is not None:
                return answer
        left = 0.0 if self._is_closed else end - asyncio.get_running_loop().time()
        return await self._sit(pool, kind, Waiter(ref), left, tenant, told)

    async def _may_enter(self, pool: str, tenant: str | None) -> bool:
        is_there = self._pools.knows(pool)
        if not is_there and not await self._threads.run_for(tenant, self._pools.has, pool):
            return False
        if pool in self._rooms:
            return True
        own = sum(room.tenant == tenant for room in self._rooms.values())
        most = MAX_ROOMS if tenant is None else quotas.MAX_ROOMS
        return own < most and len(self._rooms) < MAX_ROOMS

    async def _sit(
        self, pool: str, kind: Set, seat: Waiter, seconds: float, tenant: str | None, told: int
    ) -> bool:
        room = self._rooms.setdefault(pool, PoolWatcher(self._backend, pool, tenant))
        room.enter(kind, seat)
        try:
            if told != self._told:
                await self._threads.run_for(tenant, room.check, kind, seat)
            async with asyncio.timeout(seconds):
                return await seat.future
        except TimeoutError:
            return False
        finally:
            room.leave(kind, seat)
            if room.is_empty():
                self._rooms.pop(pool, None)

    async def _look_outside(
        self, pool: str, ref: WorkerRef | None, end: float, tenant: str | None
    ) -> bool | None:
        """Look, then wait a while without a room: what to answer, or None to go on."""
        seat = Waiter(ref)
        self._outside.setdefault(pool, {})[seat] = None
        try:
            found: bool | None = await self._threads.run_for(tenant, self._look, pool, ref)
            left = end - asyncio.get_running_loop().time()
            if found is not None or left <= 0 or self._is_closed:
                return found is True
            async with asyncio.timeout(min(left, LOOK_AGAIN_SECONDS)):
                await seat.future
        except TimeoutError:
            pass
        finally:
            self._outside[pool].pop(seat)
            if not self._outside[pool]:
                del self._outside[pool]
        return None

    def _look(self, pool: str, ref: WorkerRef | None) -> bool | None:
        """True: there is work; False: the worker has to leave. Blocks."""
        if self._backend.wait(pool, ref, 0.0):
            return True
        if ref is None or is_active(self._backend.worker(ref.worker_id), ref):
            return None
        return False

    def changed(self, pool: str) -> None:
        """Something happened to the pool's items: do not pause, look."""
        room = self._rooms.get(pool)
        if room is not None:
            room.look()
        for seat in list(self._outside.get(pool, ())):
            seat.wake(True)

    def told(self, worker_id: str) -> None:
        """Something happened to this worker: it may have to leave. Blocks; for a thread."""
        self._told += 1
        for room in list(self._rooms.values()):
            for kind, seat in room.seats():
                if seat.ref is not None and seat.ref.worker_id == worker_id:
                    room.check(kind, seat)
        for seats in list(self._outside.values()):
            for seat in list(seats):
                if seat.ref is not None and seat.ref.worker_id == worker_id:
                    seat.wake(True)

    def close(self) -> None:
        self._is_closed = True
        for room in list(self._rooms.values()):
            room.close()
        for seats in list(self._outside.values()):
            for seat in list(seats):
                seat.wake(False)


class PoolWatcher:
    """Those who wait for one pool, and the thread that watches it for them."""

    def __init__(self, backend: Backend, pool: str, tenant: str | None) -> None:
        self.pool = pool
        self.tenant = tenant  # the first waiter's
        self._backend = backend
        self._lock = threading.Lock()
        self._sets: dict[Set, dict[Waiter, None]] = {}
        self._look = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def enter(self, kind: Set, seat: Waiter) -> None:
        with self._lock:
            self._sets.setdefault(kind, {})[seat] = None
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name=f"sprat-room-{self.pool}", daemon=True
                )
                self._thread.start()

    def leave(self, kind: Set, seat: Waiter) -> None:
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

    def seats(self) -> list[tuple[Set, Waiter]]:
        with self._lock:
            return [(kind, seat) for kind, seats in self._sets.items() for seat in seats]

    def check(self, kind: Set, seat: Waiter) -> bool:
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
