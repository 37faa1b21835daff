"""Sleeping until there is something to do."""

from __future__ import annotations

import time

from sprat import model
from sprat.errors import UnknownWorker
from sprat.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.backend import WorkerRef
    from sprat.stores.sqlite.connection import Connection, Transaction

LOOK_AGAIN_SECONDS = 1.0  # a waiter looks this often even if the bell is silent

IS_READY = """
SELECT EXISTS (SELECT 1 FROM work_pool
               WHERE pool_name = ?1 AND status = 'pending' AND run_at IS NULL)
"""
NEXT_DUE = """
SELECT min(run_at) FROM work_pool
WHERE pool_name = ? AND status = 'pending' AND run_at IS NOT NULL
"""
PAUSED_UNTIL = "SELECT paused_until FROM pool WHERE name = ?"
WORKER = "SELECT status, incarnation FROM worker_registry WHERE worker_id = ?"


class Look(Record):
    """What a waiter sees: whether to go on waiting, and when to look again at the latest."""

    has_work: bool
    has_to_leave: bool
    pause: float


def wait(connection: Connection, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
    connection.write_notes()
    end = time.monotonic() + seconds
    while True:
        connection.bell.listen()  # before looking: what comes after the look rings
        seen = connection.read(look, pool, worker)
        left = end - time.monotonic()
        if seen.has_to_leave or (left <= 0 and not seen.has_work):
            return False
        if seen.has_work:
            return True
        connection.bell.wait(min(left, seen.pause))


def look(tx: Transaction, pool: str, worker: WorkerRef | None) -> Look:
    due = tx.run(NEXT_DUE, (pool,)).get
    paused_until = tx.run(PAUSED_UNTIL, (pool,)).get or 0.0
    has_work = bool(tx.run(IS_READY, (pool,)).get) or (due is not None and due <= tx.now)
    pause = LOOK_AGAIN_SECONDS
    for moment in (paused_until, due or 0.0):
        if moment > tx.now:
            pause = min(pause, moment - tx.now)
    return Look(
        has_work=has_work and paused_until <= tx.now,
        has_to_leave=worker is not None and _has_to_leave(tx, worker),
        pause=pause,
    )


def _has_to_leave(tx: Transaction, worker: WorkerRef) -> bool:
    row = tx.run(WORKER, (worker.worker_id,)).fetchone()
    if row is None:
        raise UnknownWorker(f"worker {worker.worker_id!r} is not registered: register it first")
    return row[0] != model.ACTIVE or worker.incarnation not in (None, row[1])
