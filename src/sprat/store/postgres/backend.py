"""The store in PostgreSQL 13 or newer, in a schema of its own: schema.sql has the tables.

Each verb is one transaction. Those that workers call all day (push, exchange, look) are functions
of the server, one round trip each: functions.sql, pushing.sql and lanes.sql. The others are Python
over transaction.py: items, claims, pools, workers, scaling, statistics, documents. connections.py
has the connections and what happens when they end, line.py a short call over one, complaints.py
the errors, waiting.py lets an idle worker sleep, cancel_bell.py wakes a busy one, marks.py renews
leases after an outage, address.py reads the URL.
"""

from __future__ import annotations

from sprat.core.errors import StoreUnavailable
from sprat.store.lost_claims import LostClaims
from sprat.store.postgres import address as addresses
from sprat.store.postgres import claims, marks, pushing, scaling, waiting
from sprat.store.postgres import release as releasing
from sprat.store.postgres import workers as registry
from sprat.store.postgres.cancel_bell import PostgresCancelSignal
from sprat.store.postgres.connections import Sessions
from sprat.store.postgres.pools import WAS_ASKED
from sprat.store.sql.backend import SqlBackend
from sprat.store.sql.pools import CHECK_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Concatenate, ParamSpec, TypeVar

    from sprat.core import model
    from sprat.store.backend import ClaimRef, WorkerRef

    P = ParamSpec("P")
    T = TypeVar("T")


class PostgresBackend(SqlBackend):
    def __init__(self, url: str) -> None:
        self._connections = Sessions(addresses.parse(url))
        self._ears = waiting.Listeners(self._connections)
        self._bell = PostgresCancelSignal(self._connections)
        self._lost_claims = LostClaims()
        self._read = self._connections.read
        self._write = self._write_synced = self._connections.write
        self._read_one = self._write_one = self._one

    def _one(self, verb: Callable[Concatenate[Any, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._connections.repeatable(lambda tx: verb(tx, *args, **kwargs))

    def _write_notes(self) -> None:
        self._connections.write_notes()

    def _before_leases(self) -> None:
        marks.note(self._connections)

    # -- items ------------------------------------------------------------------------------

    def push(self, pool: str, items: Sequence[model.NewItem]) -> list[str]:
        return pushing.push(self._connections, pool, items)

    def push_joined(
        self, pool: str, items: Sequence[model.NewItem], connection: object
    ) -> list[str]:
        return pushing.push_joined(self._connections, pool, items, connection)

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
        request = self._lost_claims.request(pool, worker, claim)
        call = claims.call_for(pool, worker, start, announced, request)
        try:
            answer = claims.exchange(self._connections, call, settlements)
        except StoreUnavailable:
            self._lost_claims.keep(pool, worker, *request[:2])
            raise
        if call.again:
            return self._lost_claims.answered(self, pool, worker, claim, answer)
        return answer

    def settle_joined(
        self, pool: str, settlements: Sequence[model.Settlement], connection: object
    ) -> tuple[bool, ...]:
        return claims.settle_joined(self._connections, pool, settlements, connection)

    def save(
        self,
        claim: ClaimRef,
        *,
        checkpoint: str | None = None,
        progress: float | None = None,
        note: str | None = None,
    ) -> bool:
        return self._one(claims.save, claim, checkpoint, progress, note)

    def release(self, pool: str, worker_id: str, started: Sequence[str] | None = None) -> int:
        return self._write(releasing.release, worker_id, pool=pool, started=started)[0]

    def wait(self, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
        return waiting.wait(self._connections, self._ears, pool, worker, seconds)

    # -- pools ------------------------------------------------------------------------------

    def request_check(self, pool: str, max_workers: int) -> bool:
        row = self._connections.call(WAS_ASKED, (pool, CHECK_SECONDS))
        if not row or row[0][0]:
            return False  # the usual answer in a burst: without a lock
        return super().request_check(pool, max_workers)

    # -- workers ----------------------------------------------------------------------------

    def register(self, worker: model.WorkerRegistration) -> model.WorkerRecord:
        marks.note(self._connections)
        return self._write(registry.register, worker)

    def heartbeat(
        self, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
    ) -> model.Heartbeat:
        marks.note(self._connections)
        answer = self._write(registry.heartbeat, worker, metadata, holding)
        self._connections.write_due_notes()  # of a job that runs for long
        return answer

    def keep_alive(self, worker_ids: Sequence[str]) -> int:
        marks.note(self._connections)
        return self._one(registry.keep_alive, worker_ids)

    def touch(self) -> None:
        marks.touch(self._connections)

    def lost(self, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
        self._bell.silence()
        return self._one(registry.lost_of, holding)

    def cancel_bell(self, worker: WorkerRef) -> int | None:
        return self._bell.descriptor()

    def update_status(
        self,
        worker: WorkerRef,
        status: str,
        *,
        reason: str | None = None,
        started: Sequence[str] | None = None,
    ) -> bool:
        marks.note(self._connections)
        return self._write(registry.update_status, worker, status, reason, started)

    def worker(self, worker_id: str) -> model.WorkerRecord | None:
        return self._one(registry.get, worker_id)

    def workers(self, which: model.WorkerFilter) -> list[model.WorkerRecord]:
        return self._read(registry.find, which)

    def reap(self, pool: str | None, threshold: float | None) -> model.Reaped:
        marks.note(self._connections)
        return self._write(registry.reap, pool, threshold)

    # -- scaling ----------------------------------------------------------------------------

    def observe(self, pool: str, group: str | None, window: float) -> model.Snapshot:
        self._connections.write_notes()
        return self._read(scaling.observe, pool, group, window)

    def record(self, version: int, decision: model.Decision) -> model.RecordedDecision | None:
        from sprat.core.payload import new_ids

        marks.note(self._connections)
        worker_ids = [f"w-{one}" for one in new_ids(decision.launch)]
        return self._write(scaling.record, version, decision, worker_ids)

    def decisions(self, pool: str, group: str | None, limit: int) -> list[model.RecordedDecision]:
        return self._one(scaling.decisions, pool, group, limit)

    # -- the store itself -------------------------------------------------------------------

    def describe(self) -> dict[str, object]:
        from sprat.store.postgres import diagnostics

        return self._one(diagnostics.describe, self._connections)

    def close(self) -> None:
        self._ears.close()
        self._bell.close()
        self._connections.close()
