"""The verbs that PostgreSQL does in its own way; the others are in store/sql/backend.py.

Those that workers call all day (push, exchange, wait) are functions of the server, one round trip
each: functions.sql, pushing.sql and lanes.sql.
"""

from __future__ import annotations

from sprat.core.errors import StoreUnavailable
from sprat.store.lost_claims import LostClaims
from sprat.store.postgres import address as addresses
from sprat.store.postgres import exchange, marks, pushing, waiting
from sprat.store.postgres.cancel_bell import PostgresCancelSignal
from sprat.store.postgres.connections import Sessions
from sprat.store.postgres.pools import WAS_ASKED
from sprat.store.postgres.transaction import PostgresTransaction
from sprat.store.sql.backend import SqlBackend
from sprat.store.sql.pools import CHECK_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Concatenate, ParamSpec, TypeVar

    from sprat.core import model
    from sprat.store.backend import ClaimRef, WorkerRef

    P = ParamSpec("P")
    T = TypeVar("T")


class PostgresBackend(SqlBackend):
    _statements = PostgresTransaction.sql

    def __init__(self, url: str) -> None:
        self._connections = Sessions(addresses.parse(url))
        self._ears = waiting.Listeners(self._connections)
        self._cancel_bell = PostgresCancelSignal(self._connections)
        self._lost_claims = LostClaims()
        self._read = self._connections.read
        self._write = self._write_synced = self._connections.write
        self._read_one = self._write_one = self._one

    def _one(
        self,
        verb: Callable[Concatenate[PostgresTransaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
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
        call = exchange.call_for(pool, worker, start, announced, request)
        try:
            answer = exchange.exchange(self._connections, call, settlements)
        except StoreUnavailable:
            self._lost_claims.keep(pool, worker, *request[:2])
            raise
        if call.again:
            return self._lost_claims.answered(self, pool, worker, claim, answer)
        return answer

    def settle_joined(
        self, pool: str, settlements: Sequence[model.Settlement], connection: object
    ) -> tuple[bool, ...]:
        return exchange.settle_joined(self._connections, pool, settlements, connection)

    def wait(self, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
        return waiting.wait(self._connections, self._ears, pool, worker, seconds)

    # -- pools and workers --------------------------------------------------------------------

    def request_check(self, pool: str, max_workers: int) -> bool:
        row = self._connections.call(WAS_ASKED, (pool, CHECK_SECONDS))
        if not row or row[0][0]:
            return False  # the usual answer in a burst: without a lock
        return super().request_check(pool, max_workers)

    def heartbeat(
        self, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
    ) -> model.Heartbeat:
        answer = super().heartbeat(worker, metadata, holding)
        self._connections.write_due_notes()  # of a job that runs for long
        return answer

    def touch(self) -> None:
        marks.touch(self._connections)

    # -- the store itself -------------------------------------------------------------------

    def describe(self) -> dict[str, object]:
        from sprat.store.postgres import diagnostics

        return self._one(diagnostics.describe, self._connections)

    def close(self) -> None:
        self._ears.close()
        self._cancel_bell.close()
        self._connections.close()
