"""Long polls: workers wait for work without a thread each.

Each pool with waiters has one watcher with one thread, which sleeps in the store's own `wait`. When
there is work, the thread asks for one waiter of each set of capabilities whether the work is for
it, for the answer is the same for all others of that set, and wakes as many as there are ready
items. A worker that has to leave is woken too: at once when that happened through this server,
within a second or so when it happened elsewhere.

There are watchers for pools that exist, up to a number for each tenant and for all. A waiter
without a watcher looks once a second, and when its pool changed through this server.
"""

from __future__ import annotations

import asyncio
import threading

from sprat.core import model
from sprat.core.errors import SpratError
from sprat.server import quotas
from sprat.server.threads import Threads
from sprat.store.backend import Backend, WorkerRef

LOOK_SECONDS = 1.0  # in the store's wait; then a watcher looks for workers that have to leave
SHORTEST_PAUSE_SECONDS = 0.02  # after a round, so that woken workers can claim
LONGEST_PAUSE_SECONDS = 1.0  # while there is work, but none for the waiters
MAX_WATCHERS = 256  # threads, of all tenants together
LOOK_AGAIN_SECONDS = 1.0  # of a waiter without a watcher


class Waiter:
    """One request that waits."""

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
    """All watchers and waiters of one server process."""

    def __init__(self, backend: Backend, threads: Threads, pools: quotas.KnownPools) -> None:
        self._backend = backend
        self._threads = threads
        self._pools = pools
        self._watchers: dict[str, PoolWatcher] = {}
        self._unwatched: dict[str, dict[Waiter, None]] = {}  # waiters without a watcher, by pool
        self._is_closed = False
        self._changes = 0  # how often something happened to a worker

    async def wait(
        self, pool: str, ref: WorkerRef | None, seconds: float, tenant: str | None = None
    ) -> bool:
        """As the verb `wait`, without blocking anything. `tenant` is the caller's."""
        if await self._threads.run_for(tenant, self._backend.wait, pool, ref, 0.0):
            return True
        if seconds <= 0 or self._is_closed:
            return False
        kind: Set = None
        changes = self._changes  # before the look at the worker: what comes after it is noticed
        if ref is not None:
            worker = await self._threads.run_for(tenant, self._backend.worker, ref.worker_id)
            if not is_active(worker, ref):
                return False
            kind = tuple(sorted(worker.capabilities))
        end = asyncio.get_running_loop().time() + seconds
        while not await self._may_watch(pool, tenant):
            answer = await self._wait_unwatched(pool, ref, end, tenant)
            if answer is not None:
                return answer
        left = 0.0 if self._is_closed else end - asyncio.get_running_loop().time()
        return await self._wait_watched(pool, kind, Waiter(ref), left, tenant, changes)

    async def _may_watch(self, pool: str, tenant: str | None) -> bool:
        is_there = self._pools.knows(pool)
        if not is_there and not await self._threads.run_for(tenant, self._pools.has, pool):
            return False
        if pool in self._watchers:
            return True
        own = sum(watcher.tenant == tenant for watcher in self._watchers.values())
        most = MAX_WATCHERS if tenant is None else quotas.MAX_WATCHERS
        return own < most and len(self._watchers) < MAX_WATCHERS

    async def _wait_watched(
        self, pool: str, kind: Set, waiter: Waiter, seconds: float, tenant: str | None, changes: int
    ) -> bool:
        watcher = self._watchers.setdefault(pool, PoolWatcher(self._backend, pool, tenant))
        watcher.add(kind, waiter)
        try:
            if changes != self._changes:
                await self._threads.run_for(tenant, watcher.check, kind, waiter)
            async with asyncio.timeout(seconds):
                return await waiter.future
        except TimeoutError:
            return False
        finally:
            watcher.remove(kind, waiter)
            if watcher.is_empty():
                self._watchers.pop(pool, None)

    async def _wait_unwatched(
        self, pool: str, ref: WorkerRef | None, end: float, tenant: str | None
    ) -> bool | None:
        """Look, then wait a while without a watcher: what to answer, or None to go on."""
        waiter = Waiter(ref)
        self._unwatched.setdefault(pool, {})[waiter] = None
        try:
            found: bool | None = await self._threads.run_for(tenant, self._look, pool, ref)
            left = end - asyncio.get_running_loop().time()
            if found is not None or left <= 0 or self._is_closed:
                return found is True
            async with asyncio.timeout(min(left, LOOK_AGAIN_SECONDS)):
                await waiter.future
        except TimeoutError:
            pass
        finally:
            self._unwatched[pool].pop(waiter)
            if not self._unwatched[pool]:
                del self._unwatched[pool]
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
        watcher = self._watchers.get(pool)
        if watcher is not None:
            watcher.look()
        for waiter in list(self._unwatched.get(pool, ())):
            waiter.wake(True)

    def worker_changed(self, worker_id: str) -> None:
        """Something happened to this worker: it may have to leave. Blocks; for a thread."""
        self._changes += 1
        for watcher in list(self._watchers.values()):
            for kind, waiter in watcher.waiters():
                if waiter.ref is not None and waiter.ref.worker_id == worker_id:
                    watcher.check(kind, waiter)
        for waiters in list(self._unwatched.values()):
            for waiter in list(waiters):
                if waiter.ref is not None and waiter.ref.worker_id == worker_id:
                    waiter.wake(True)

    def close(self) -> None:
        self._is_closed = True
        for watcher in list(self._watchers.values()):
            watcher.close()
        for waiters in list(self._unwatched.values()):
            for waiter in list(waiters):
                waiter.wake(False)


class PoolWatcher:
    """The waiters of one pool, and the thread that watches it for them."""

    def __init__(self, backend: Backend, pool: str, tenant: str | None) -> None:
        self.pool = pool
        self.tenant = tenant  # the first waiter's
        self._backend = backend
        self._lock = threading.Lock()
        self._sets: dict[Set, dict[Waiter, None]] = {}
        self._look = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, kind: Set, waiter: Waiter) -> None:
        with self._lock:
            self._sets.setdefault(kind, {})[waiter] = None
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name=f"sprat-watcher-{self.pool}", daemon=True
                )
                self._thread.start()

    def remove(self, kind: Set, waiter: Waiter) -> None:
        with self._lock:
            waiters = self._sets.get(kind, {})
            waiters.pop(waiter, None)
            if not waiters:
                self._sets.pop(kind, None)

    def is_empty(self) -> bool:
        return not self._sets

    def look(self) -> None:
        self._look.set()

    def close(self) -> None:
        self._is_closed = True
        for _, waiter in self.waiters():
            waiter.wake(False)
        self._look.set()

    def waiters(self) -> list[tuple[Set, Waiter]]:
        with self._lock:
            return [(kind, waiter) for kind, waiters in self._sets.items() for waiter in waiters]

    def check(self, kind: Set, waiter: Waiter) -> bool:
        """Wake a worker that has to leave; whether it had to."""
        if waiter.ref is None:
            return False
        if is_active(self._backend.worker(waiter.ref.worker_id), waiter.ref):
            return False
        self.remove(kind, waiter)
        waiter.wake(False)
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
            waiters = list(self._sets.get(kind, ()))
        while waiters and woken < ready:
            waiter = waiters.pop(0)
            if not woken and not self._backend.wait(self.pool, waiter.ref, 0.0):
                if self.check(kind, waiter):
                    continue  # this one has left; ask for another
                return 0
            self.remove(kind, waiter)
            waiter.wake(True)
            woken += 1
        return woken

    def _wake_leavers(self) -> None:
        which = model.WorkerFilter(status=model.TERMINATING)
        leaving = {worker.worker_id for worker in self._backend.workers(which)}
        if leaving:
            for kind, waiter in self.waiters():
                if waiter.ref is not None and waiter.ref.worker_id in leaving:
                    self.check(kind, waiter)


def is_active(worker: model.WorkerRecord | None, ref: WorkerRef) -> bool:
    """Whether the worker may still claim."""
    return (
        worker is not None
        and worker.status == model.ACTIVE
        and ref.incarnation in (None, worker.incarnation)
    )
