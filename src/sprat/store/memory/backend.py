"""MemoryBackend: the verbs of `sprat.store.backend`, each under one lock at one moment."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Condition

from sprat.core import model
from sprat.core.runtime import runtime
from sprat.store.backend import Backend, ClaimRef, WorkerRef
from sprat.store.memory import documents, registry, scaling, work
from sprat.store.memory.state import StoreState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# A waiter looks at the clock this often: delayed items and pauses end without a verb,
# and by an injected clock at that.
LOOK_SECONDS = 0.02


class MemoryBackend(Backend):
    """A store in this process: for tests, for trying things out, and as the model of the others."""

    def __init__(self, *, clock: Callable[[], float] = runtime.time) -> None:
        self._clock = Clock(clock)
        self._state = StoreState()
        self._changed = Condition()

    def _now(self) -> float:
        """The moment of this verb; delayed items whose time has come are made ready."""
        now = self._clock.read()
        for pool in self._state.pools.values():
            pool.wake(now)
        return now

    @contextmanager
    def _change(self) -> Iterator[float]:
        """A verb that may give waiters something to do: holds the lock, then wakes them."""
        with self._changed:
            yield self._now()
            self._changed.notify_all()

    # -- items ------------------------------------------------------------------------------

    def push(self, pool: str, items: Sequence[model.NewItem]) -> list[str]:
        with self._change() as now:
            return work.push(self._state, pool, items, now)

    def exchange(
        self,
        pool: str,
        worker: WorkerRef | None = None,
        *,
        settlements: Sequence[model.Settlement] = (),
        start: ClaimRef | None = None,
        claim: int = 0,
        announced: bool = False,
    ) -> model.Exchange:
        with self._change() as now:
            return work.exchange(
                self._state,
                pool,
                worker,
                now,
                settlements=settlements,
                start=start,
                claim=claim,
                announced=announced,
            )

    def save(
        self,
        claim: ClaimRef,
        *,
        checkpoint: str | None = None,
        progress: float | None = None,
        note: str | None = None,
    ) -> bool:
        with self._changed:
            item = self._state.item(claim.item_id)
            return work.save(item, claim.token, checkpoint=checkpoint, progress=progress, note=note)

    def release(self, pool: str, worker_id: str, started: Sequence[str] | None = None) -> int:
        with self._change() as now:
            return work.release(self._state, pool, worker_id, started, now)

    def cancel(self, pool: str, item_ids: Sequence[str]) -> int:
        with self._change() as now:  # a tenant may have room again
            return work.cancel(self._state, pool, item_ids, now)

    def requeue(self, pool: str, item_ids: Sequence[str]) -> int:
        with self._change() as now:
            return work.requeue(self._state, pool, item_ids, now)

    def item(self, item_id: str) -> model.WorkItem:
        with self._changed:
            self._now()
            return self._state.item(item_id).as_record()

    def pools_of(self, item_ids: Sequence[str]) -> list[str | None]:
        with self._changed:
            items = map(self._state.items.get, item_ids)
            return [None if item is None else item.pool for item in items]

    def items(
        self, pool: str, status: str | None, limit: int, after: str | None
    ) -> list[model.WorkItem]:
        with self._changed:
            self._now()
            return work.listed(self._state, pool, status, limit, after)

    def find(
        self, pool: str, which: model.ItemFilter, limit: int, after: str | None
    ) -> model.Found:
        with self._changed:
            return work.found(self._state, pool, which, limit, after, self._now())

    def counts(self, pool: str) -> model.Counts:
        with self._changed:
            self._now()
            return self._state.look(pool).counts()

    def wait(self, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
        end = runtime.monotonic() + seconds
        with self._changed:
            while True:
                answer = self._look(pool, worker)
                left = end - runtime.monotonic()
                if answer is not None or left <= 0:
                    return answer is True
                self._changed.wait(min(left, LOOK_SECONDS))

    def _look(self, name: str, ref: WorkerRef | None) -> bool | None:
        """True: there is work; False: not for this worker any more; None: wait."""
        now = self._now()
        pool = self._state.look(name)
        if ref is None:
            has_work = next(iter(pool.ready), None) is not None
        else:
            worker = self._state.worker(ref.worker_id)
            if not work.may_claim(worker, ref):
                return False
            best = pool.ready.best(worker.capabilities, pool.has_room, pool.turns)
            has_work = best is not None
        return True if has_work and not pool.is_paused(now) else None

    # -- pools ------------------------------------------------------------------------------

    def pools(self) -> list[str]:
        with self._changed:
            return sorted(self._state.pools)

    def pool_state(self, pool: str) -> model.PoolState:
        with self._changed:
            return work.pool_state(self._state, pool, self._now())

    def configure(self, pool: str, settings: str, version: int | None) -> bool:
        with self._change():
            return work.configure(self._state, pool, settings, version)

    def pause(self, pool: str, seconds: float | None, reason: str | None = None) -> None:
        with self._change() as now:
            work.pause(self._state, pool, seconds, reason, now)

    def hold_off(self, pool: str, seconds: float, reason: str | None = None) -> None:
        with self._changed:
            work.hold_off(self._state, pool, seconds, reason, self._now())

    def request_check(self, pool: str, max_workers: int) -> bool:
        with self._changed:
            return scaling.request_check(self._state, pool, max_workers, self._now())

    def begin_check(self, pool: str) -> None:
        with self._changed:
            scaling.begin_check(self._state, pool, self._now())

    def purge(self, pool: str, limit: int) -> int:
        with self._changed:
            return work.purge(self._state, pool, limit, self._now())

    def delete_pool(self, pool: str, limit: int) -> bool | None:
        with self._changed:
            self._now()
            return work.delete_pool(self._state, pool, limit)

    # -- workers ----------------------------------------------------------------------------

    def register(self, worker: model.WorkerRegistration) -> model.WorkerRecord:
        with self._change() as now:
            return registry.register(self._state, worker, now)

    def heartbeat(
        self, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
    ) -> model.Heartbeat:
        with self._changed:
            return registry.heartbeat(self._state, worker, metadata, holding, self._now())

    def keep_alive(self, worker_ids: Sequence[str]) -> int:
        with self._changed:
            return registry.keep_alive(self._state, worker_ids, self._now())

    def touch(self) -> None:
        with self._changed:
            self._state.touch(self._now())

    def lost(self, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
        with self._changed:
            return registry.lost(self._state, holding)

    def update_status(
        self,
        worker: WorkerRef,
        status: str,
        *,
        reason: str | None = None,
        started: Sequence[str] | None = None,
    ) -> bool:
        with self._change() as now:
            return registry.update_status(
                self._state, worker, status, now, reason=reason, started=started
            )

    def worker(self, worker_id: str) -> model.WorkerRecord | None:
        with self._changed:
            entry = self._state.workers.get(worker_id)
            return None if entry is None else entry.as_record()

    def workers(self, which: model.WorkerFilter) -> list[model.WorkerRecord]:
        with self._changed:
            return registry.listed(self._state, which, self._now())

    def reap(self, pool: str | None, threshold: float | None) -> model.Reaped:
        with self._change() as now:
            return registry.reap(self._state, pool, threshold, now)

    # -- scaling ----------------------------------------------------------------------------

    def observe(self, pool: str, group: str | None, window: float) -> model.Snapshot:
        with self._changed:
            return scaling.observe(self._state, pool, group, window, self._now())

    def record(self, version: int, decision: model.Decision) -> model.RecordedDecision | None:
        with self._change() as now:  # drained workers stop waiting
            return scaling.record(self._state, version, decision, now)

    def decisions(self, pool: str, group: str | None, limit: int) -> list[model.RecordedDecision]:
        with self._changed:
            return scaling.decisions(self._state, pool, group, limit)

    def stats(self, pool: str, seconds: float) -> model.Stats:
        with self._changed:
            return self._state.look(pool).ledger.stats(self._now(), seconds)

    def history(self, pool: str, seconds: float) -> list[model.StatsBucket]:
        with self._changed:
            return self._state.look(pool).ledger.history(self._now(), seconds)

    def totals(self, pool: str) -> model.Totals:
        with self._changed:
            return scaling.totals(self._state, pool)

    # -- documents and rates ------------------------------------------------------------------

    def document(self, kind: str, name: str) -> model.Document | None:
        with self._changed:
            return documents.get(self._state, kind, name, self._now())

    def documents(self, kind: str, limit: int, after: str | None) -> list[model.Document]:
        with self._changed:
            return documents.page(self._state, kind, limit, after, self._now())

    def put(
        self, kind: str, name: str, body: str | None, version: int | None, seconds: float | None
    ) -> bool:
        with self._changed:
            now = self._now()
            return documents.put(
                self._state,
                model.Document(kind=kind, name=name, body=body or ""),
                gone=body is None,
                version=version,
                expires_at=float("inf") if seconds is None else now + seconds,
                now=now,
            )

    def take(self, name: str, amount: float, rate: float, burst: float) -> float:
        with self._changed:
            return documents.take(self._state, name, amount, self._now(), rate=rate, burst=burst)

    # -- the store itself -------------------------------------------------------------------

    def describe(self) -> dict[str, object]:
        return {"kind": "memory", "where": "this process", "durability": "none"}

    def close(self) -> None:
        """Nothing to let go of: the data goes with the object."""


class Clock:
    """Another clock that never goes back: when that one does, time goes on from where it was."""

    def __init__(self, source: Callable[[], float]) -> None:
        self._source = source
        self._read = source()
        self._ahead = 0.0  # by how much we lead the source, for all the steps that it took back
        self._latest = self._read

    def read(self) -> float:
        read = self._source()
        self._ahead += max(0.0, self._read - read)
        self._read = read
        self._latest = max(self._latest, read + self._ahead)  # not even by a rounding
        return self._latest
