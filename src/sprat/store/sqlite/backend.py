"""The embedded store: one SQLite file, nothing to start. The tables are in schema.sql.

Each verb is one transaction over functions of this package: items (push, look, steer), claims and
lanes (take, settle, free), pools, workers, scaling, statistics. connection.py has the transactions
and the errors, clock.py the time; waiting.py and bell.py let an idle worker sleep.
"""

from __future__ import annotations

from sprat.store.sql.backend import SqlBackend
from sprat.store.sqlite import claims, exchange_fast_path, marks, pushing
from sprat.store.sqlite import workers as registry
from sprat.store.sqlite.busy_handler import let_others_go_first
from sprat.store.sqlite.connection import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.core import model
    from sprat.store.backend import ClaimRef, WorkerRef


class SqliteBackend(SqlBackend):
    def __init__(self, path: str, *, sync_all: bool = False) -> None:
        self._connection = Connection(path, sync_all=sync_all)
        self._read = self._read_one = self._connection.read
        self._write = self._write_one = self._connection.write
        self._write_synced = self._connection.write_synced

    def _write_notes(self) -> None:
        self._connection.write_notes()

    def _before_leases(self) -> None:
        self._connection.file.check()

    # -- items ------------------------------------------------------------------------------

    def push(self, pool: str, items: Sequence[model.NewItem]) -> list[str]:
        return self._write_synced(pushing.push, pool, items)

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
        return self._write(
            claims.exchange,
            pool,
            worker,
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
        return self._write(claims.save, claim, checkpoint, progress, note)

    def release(self, pool: str, worker_id: str, started: Sequence[str] | None = None) -> int:
        return self._write(claims.release, worker_id, pool=pool, started=started)[0]

    def wait(self, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
        from sprat.store.sqlite import waiting  # here: a worker that finds work never waits

        return waiting.wait(self._connection, pool, worker, seconds)

    # -- pools ------------------------------------------------------------------------------

    # -- workers ----------------------------------------------------------------------------

    def register(self, worker: model.WorkerRegistration) -> model.WorkerRecord:
        self._connection.file.check()
        return self._write(registry.register, worker)

    def heartbeat(
        self, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
    ) -> model.Heartbeat:
        self._connection.file.check()
        return self._write(registry.heartbeat, worker, metadata, holding)

    def keep_alive(self, worker_ids: Sequence[str]) -> int:
        return self._write(registry.keep_alive, worker_ids)

    def touch(self) -> None:
        self._write(marks.touch)

    def lost(self, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
        self._connection.cancel_bell.silence()  # before looking: what comes after the look rings
        return self._read(registry.lost, holding)

    def cancel_bell(self, worker: WorkerRef) -> int | None:
        return self._connection.cancel_bell.descriptor()

    def update_status(
        self,
        worker: WorkerRef,
        status: str,
        *,
        reason: str | None = None,
        started: Sequence[str] | None = None,
    ) -> bool:
        return self._write(registry.update_status, worker, status, reason, started)

    def worker(self, worker_id: str) -> model.WorkerRecord | None:
        return self._read(registry.get, worker_id)

    def workers(self, which: model.WorkerFilter) -> list[model.WorkerRecord]:
        return self._read(registry.find, which)

    def reap(self, pool: str | None, threshold: float | None) -> model.Reaped:
        self._connection.file.check()
        self._connection.follow_wall_clock()
        while True:
            reaped = self._write(registry.reap, pool, threshold, self._connection.patience)
            if reaped is not None:
                return reaped
            let_others_go_first()

    # -- scaling (its modules are imported on first use: a worker needs none of them) ---------

    def observe(self, pool: str, group: str | None, window: float) -> model.Snapshot:
        from sprat.store.sqlite import scaling

        self._connection.write_notes()
        return self._read(scaling.observe, pool, group, window)

    def record(self, version: int, decision: model.Decision) -> model.RecordedDecision | None:
        from sprat.store.sqlite import scaling

        patience = self._connection.patience
        recorded = self._write(scaling.record, version, decision, patience)
        if recorded is None and not self._read(patience.is_fair):
            let_others_go_first()
        return recorded

    def decisions(self, pool: str, group: str | None, limit: int) -> list[model.RecordedDecision]:
        from sprat.store.sqlite import scaling

        return self._read(scaling.decisions, pool, group, limit)

    # -- the store itself -------------------------------------------------------------------

    def compact(self) -> tuple[int, int]:
        return self._connection.compact()

    def describe(self) -> dict[str, object]:
        return self._connection.describe()

    def close(self) -> None:
        self._connection.close()
