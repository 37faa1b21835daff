"""The verbs that SQLite does in its own way; the others are in store/sql/backend.py."""

from __future__ import annotations

from sprat.store.sql.backend import SqlBackend
from sprat.store.sqlite import exchange_fast_path, marks, pushing
from sprat.store.sqlite.busy_handler import let_others_go_first
from sprat.store.sqlite.connection import Connection
from sprat.store.sqlite.exchange import exchange
from sprat.store.sqlite.transaction import SqliteTransaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.core import model
    from sprat.store.backend import ClaimRef, WorkerRef


class SqliteBackend(SqlBackend):
    _statements = SqliteTransaction.sql

    def __init__(self, path: str, *, sync_all: bool = False) -> None:
        self._connection = Connection(path, sync_all=sync_all)
        self._read = self._read_one = self._connection.read
        self._write = self._write_one = self._connection.write
        self._write_synced = self._connection.write_synced
        self._cancel_bell = self._connection.cancel_bell

    def _write_notes(self) -> None:
        self._connection.write_notes()

    def _let_others_go_first(self) -> None:
        let_others_go_first()

    # -- items ------------------------------------------------------------------------------

    def push(self, pool: str, items: Sequence[model.NewItem]) -> list[str]:
        return self._connection.write_synced(pushing.push, pool, items)

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
        if claim == 1 and worker is not None and start is None and len(settlements) < 2:
            return exchange_fast_path.exchange(
                self._connection, pool, worker, settlements, announced
            )
        return self._connection.write(
            exchange,
            pool,
            worker,
            settlements=settlements,
            start=start,
            claim=claim,
            announced=announced,
        )

    def wait(self, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
        from sprat.store.sqlite import waiting  # here: a worker that finds work never waits

        return waiting.wait(self._connection, pool, worker, seconds)

    # -- pools and workers --------------------------------------------------------------------

    def request_check(self, pool: str, max_workers: int) -> bool:
        self._connection.file.check()
        return super().request_check(pool, max_workers)

    def register(self, worker: model.WorkerRegistration) -> model.WorkerRecord:
        self._connection.file.check()
        return super().register(worker)

    def heartbeat(
        self, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
    ) -> model.Heartbeat:
        self._connection.file.check()
        return super().heartbeat(worker, metadata, holding)

    def touch(self) -> None:
        self._connection.write(marks.touch)

    def reap(self, pool: str | None, threshold: float | None) -> model.Reaped:
        self._connection.file.check()
        self._connection.follow_wall_clock()
        return super().reap(pool, threshold)

    def record(self, version: int, decision: model.Decision) -> model.RecordedDecision | None:
        recorded = super().record(version, decision)
        if recorded is None and not self._connection.read(self._connection.patience.is_fair):
            self._let_others_go_first()
        return recorded

    # -- the store itself -------------------------------------------------------------------

    def compact(self) -> tuple[int, int]:
        return self._connection.compact()

    def describe(self) -> dict[str, object]:
        return self._connection.describe()

    def close(self) -> None:
        self._connection.close()
