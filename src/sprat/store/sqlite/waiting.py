"""Sleeping until there is something to do."""

from __future__ import annotations

from sprat.core import jsontext, model
from sprat.core.errors import UnknownWorker
from sprat.core.payload import settings_from
from sprat.core.record import Record
from sprat.core.runtime import runtime
from sprat.store.sqlite import lanes
from sprat.store.sqlite.pools import NEXT_DUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.store.backend import WorkerRef
    from sprat.store.sqlite.connection import Connection
    from sprat.store.sqlite.transaction import SqliteTransaction

LOOK_AGAIN_SECONDS = 1.0  # a waiter looks this often even if the bell is silent

POOL = "SELECT paused_until, has_lanes, turn, settings FROM pool WHERE name = ?"
WORKER = "SELECT status, incarnation, capabilities FROM worker_registry WHERE worker_id = ?"


class Look(Record):
    """What a waiter sees: whether to go on waiting, and when to look again at the latest."""

    has_work: bool
    has_to_leave: bool
    pause: float


def wait(connection: Connection, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
    connection.write_notes()
    end = runtime.monotonic() + seconds
    while True:
        connection.bell.listen()  # before looking: what comes after the look rings
        seen = connection.read(look, pool, worker)
        left = end - runtime.monotonic()
        if seen.has_to_leave or (left <= 0 and not seen.has_work):
            return False
        if seen.has_work:
            return True
        connection.bell.wait(min(left, seen.pause))


def look(tx: SqliteTransaction, pool: str, worker: WorkerRef | None) -> Look:
    found = tx.run(POOL, (pool,)).fetchone()
    due = tx.run(NEXT_DUE, (pool,)).get
    paused_until = (found[0] if found else None) or 0.0
    capabilities = None if worker is None else _capabilities(tx, worker)
    has_work = due is not None and due <= tx.now
    if found is not None and not has_work:
        _, has_lanes, turn, settings = found
        if capabilities is None:  # nobody in particular: whatever work there is
            has_work = lanes.has_any(tx, pool)
        else:
            has_work = bool(_ready(tx, pool, has_lanes, turn, settings, capabilities))
    pause = LOOK_AGAIN_SECONDS
    for moment in (paused_until, due or 0.0):
        if moment > tx.now:
            pause = min(pause, moment - tx.now)
    return Look(
        has_work=has_work and paused_until <= tx.now,
        has_to_leave=worker is not None and capabilities is None,
        pause=pause,
    )


def _ready(
    tx: SqliteTransaction, pool: str, has_lanes: int, turn: int, settings: str, capabilities: str
) -> list[tuple[Any, ...]]:
    """The item that a claim by this worker would get, if there is one."""
    if not has_lanes:
        return lanes.in_order(tx, pool, 1)
    turns = lanes.Turns(tx, pool, turn, settings_from(settings))
    return lanes.in_turn(tx, pool, 1, {"", *jsontext.loads(capabilities)}, turns)


def _capabilities(tx: SqliteTransaction, worker: WorkerRef) -> str | None:
    """What the worker can do, as JSON; None when it has to leave."""
    row = tx.run(WORKER, (worker.worker_id,)).fetchone()
    if row is None:
        raise UnknownWorker(f"worker {worker.worker_id!r} is not registered: register it first")
    is_active = row[0] == model.ACTIVE and worker.incarnation in (None, row[1])
    return str(row[2]) if is_active else None
