"""The verbs of both SQL stores: each is one transaction over a function of its family.

A family is imported by the first verb that needs it: most workers claim, settle and send heartbeats
only. What a database does in its own way is in its subclass: push, exchange, wait.
"""

from __future__ import annotations

from sprat.store.backend import Backend
from sprat.store.sql import items, pools, settling, workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Concatenate, ParamSpec, Protocol, TypeVar

    from sprat.core import model
    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.sql.transaction import SqlTransaction, Statements

    P = ParamSpec("P")
    T = TypeVar("T")

    class Runner(Protocol):
        """Runs a verb in a transaction."""

        def __call__(
            self,
            verb: Callable[Concatenate[SqlTransaction, P], T],
            *args: P.args,
            **kwargs: P.kwargs,
        ) -> T: ...

    class CancelBell(Protocol):
        """Wakes a busy worker: see the verbs `cancel_bell` and `lost`."""

        def descriptor(self) -> int | None: ...
        def silence(self) -> None: ...
        def close(self) -> None: ...


# What workers and scaling passes use
FAMILIES = ("claims", "documents", "items", "pools", "scaling", "statistics", "workers")


class SqlBackend(Backend):
    _statements: Statements
    _read: Runner  # all statements of the verb see one moment
    _read_one: Runner  # for a verb of one statement, or whose statements may see several moments
    _write: Runner  # whole or not at all
    _write_one: Runner  # for a verb that changes something with one statement
    _write_synced: Runner  # on disk when it returns
    _cancel_bell: CancelBell

    @classmethod
    def preload(cls) -> None:
        """Import what a verb would import on first use, for a process that forks."""
        from sprat.store.sql import documents, releasing, scaling  # noqa: F401

        for family in FAMILIES:
            getattr(cls._statements, family)

    def _write_notes(self) -> None:
        """Write the statistics that are held back, for a verb that reads them."""
        raise NotImplementedError

    def _before_leases(self) -> None:
        """Called before the transaction of a verb that renews or judges leases."""

    def _let_others_go_first(self) -> None:
        """Called when it would not be fair yet to judge leases."""

    # -- items ------------------------------------------------------------------------------

    def cancel(self, pool: str, item_ids: Sequence[str]) -> int:
        return self._write_synced(items.cancel, pool, item_ids)

    def requeue(self, pool: str, item_ids: Sequence[str]) -> int:
        return self._write_synced(items.requeue, pool, item_ids)

    def item(self, item_id: str) -> model.WorkItem:
        return self._read_one(items.get, item_id)

    def pools_of(self, item_ids: Sequence[str]) -> list[str | None]:
        return self._read_one(items.pools_of, item_ids)

    def items(
        self, pool: str, status: str | None, limit: int, after: str | None
    ) -> list[model.WorkItem]:
        return self._read_one(items.page, pool, status, limit, after)

    def find(
        self, pool: str, which: model.ItemFilter, limit: int, after: str | None
    ) -> model.Found:
        from sprat.store.sql import search

        return self._read(search.find, pool, which, limit, after)

    def counts(self, pool: str) -> model.Counts:
        return self._read_one(items.counts, pool)

    def save(
        self,
        claim: ClaimRef,
        *,
        checkpoint: str | None = None,
        progress: float | None = None,
        note: str | None = None,
    ) -> bool:
        return self._write_one(settling.save, claim, checkpoint, progress, note)

    def release(self, pool: str, worker_id: str, started: Sequence[str] | None = None) -> int:
        from sprat.store.sql import releasing

        return self._write(releasing.release, worker_id, pool=pool, started=started)[0]

    # -- pools ------------------------------------------------------------------------------

    def pools(self) -> list[str]:
        return self._read_one(pools.names)

    def pool_state(self, pool: str) -> model.PoolState:
        return self._read_one(pools.state, pool)

    def configure(self, pool: str, settings: str, version: int | None) -> bool:
        return self._write_synced(pools.configure, pool, settings, version)

    def pause(self, pool: str, seconds: float | None, reason: str | None = None) -> None:
        self._write_synced(pools.pause, pool, seconds, reason)

    def hold_off(self, pool: str, seconds: float, reason: str | None = None) -> None:
        self._write(pools.hold_off, pool, seconds, reason)

    def request_check(self, pool: str, max_workers: int) -> bool:
        self._before_leases()
        return self._write(pools.request_check, pool, max_workers)

    def begin_check(self, pool: str) -> None:
        self._before_leases()
        self._write_one(pools.begin_check, pool)

    def purge(self, pool: str, limit: int) -> int:
        return self._write(pools.purge, pool, limit)

    def delete_pool(self, pool: str, limit: int) -> bool | None:
        from sprat.store.sql import pool_deletion

        self._write_notes()  # or statistics of the pool come after its end
        answer = self._write_synced(pool_deletion.forget_items, pool, limit)
        return self._write_synced(pool_deletion.forget_pool, pool) if answer else answer

    # -- workers ----------------------------------------------------------------------------

    def register(self, worker: model.WorkerRegistration) -> model.WorkerRecord:
        self._before_leases()
        return self._write(workers.register, worker)

    def heartbeat(
        self, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
    ) -> model.Heartbeat:
        self._before_leases()
        return self._write(workers.heartbeat, worker, metadata, holding)

    def keep_alive(self, worker_ids: Sequence[str]) -> int:
        self._before_leases()
        return self._write_one(workers.keep_alive, worker_ids)

    def lost(self, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
        self._cancel_bell.silence()  # before looking: what comes after the look rings
        return self._read_one(workers.lost, holding)

    def cancel_bell(self, worker: WorkerRef) -> int | None:
        return self._cancel_bell.descriptor()

    def update_status(
        self,
        worker: WorkerRef,
        status: str,
        *,
        reason: str | None = None,
        started: Sequence[str] | None = None,
    ) -> bool:
        self._before_leases()
        return self._write(workers.update_status, worker, status, reason, started)

    def worker(self, worker_id: str) -> model.WorkerRecord | None:
        return self._read_one(workers.get, worker_id)

    def workers(self, which: model.WorkerFilter) -> list[model.WorkerRecord]:
        return self._read(workers.find, which)

    def reap(self, pool: str | None, threshold: float | None) -> model.Reaped:
        self._before_leases()
        while (reaped := self._write(workers.reap, pool, threshold)) is None:
            self._let_others_go_first()
        return reaped

    # -- scaling ----------------------------------------------------------------------------

    def observe(self, pool: str, group: str | None, window: float) -> model.Snapshot:
        from sprat.store.sql import scaling

        self._write_notes()
        return self._read(scaling.observe, pool, group, window)

    def record(self, version: int, decision: model.Decision) -> model.RecordedDecision | None:
        from sprat.core.payload import new_ids
        from sprat.store.sql import scaling

        self._before_leases()
        worker_ids = [f"w-{new_id}" for new_id in new_ids(decision.launch)]
        return self._write(scaling.record, version, decision, worker_ids)

    def decisions(self, pool: str, group: str | None, limit: int) -> list[model.RecordedDecision]:
        from sprat.store.sql import scaling

        return self._read_one(scaling.decisions, pool, group, limit)

    # -- statistics -------------------------------------------------------------------------

    def stats(self, pool: str, seconds: float) -> model.Stats:
        from sprat.store.sql import statistics

        self._write_notes()
        return self._read(statistics.stats, pool, seconds)

    def history(self, pool: str, seconds: float) -> list[model.StatsBucket]:
        from sprat.store.sql import statistics

        self._write_notes()
        return self._read(statistics.history, pool, seconds)

    def totals(self, pool: str) -> model.Totals:
        from sprat.store.sql import statistics

        self._write_notes()
        return self._read_one(statistics.totals, pool)

    # -- documents and rates ------------------------------------------------------------------

    def document(self, kind: str, name: str) -> model.Document | None:
        from sprat.store.sql import documents

        return self._read_one(documents.get, kind, name)

    def documents(self, kind: str, limit: int, after: str | None) -> list[model.Document]:
        from sprat.store.sql import documents

        return self._read_one(documents.page, kind, limit, after)

    def put(
        self, kind: str, name: str, body: str | None, version: int | None, seconds: float | None
    ) -> bool:
        from sprat.store.sql import documents

        return self._write_synced(documents.put, kind, name, body, version, seconds)

    def take(self, name: str, amount: float, rate: float, burst: float) -> float:
        from sprat.store.sql import documents

        return self._write(documents.take, name, amount, rate, burst)
