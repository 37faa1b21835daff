"""Pools themselves: settings, pause, retention."""

from __future__ import annotations

from sprat.core import jsontext, model
from sprat.core.payload import settings_from
from sprat.store.sql import items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.store.sql.transaction import SqlTransaction

FOREVER = 9e99
KEEP_WORKERS_SECONDS = 86400.0
KEEP_DECISIONS_SECONDS = 30 * 86400.0
CHECK_SECONDS = 10.0  # a pass that was asked for has begun by then, or its starter died
KEEP_TURNS = 100_000  # a tenant whose last turn is further back counts as new


def names(tx: SqlTransaction) -> list[str]:
    return [name for (name,) in tx.rows(tx.sql.pools.NAMES)]


def state(tx: SqlTransaction, pool: str) -> model.PoolState:
    row = tx.run(tx.sql.pools.STATE, (pool,)).fetchone()
    if row is None:
        return model.PoolState(name=pool, settings=model.PoolSettings())
    settings, version, *pause = row
    return model.PoolState(
        name=pool,
        settings=settings_from(settings),
        version=version,
        **pause_of(tx, *pause),
    )


def pause_of(tx: SqlTransaction, paused_until: float | None, reason: str | None) -> dict[str, Any]:
    """The fields about a pause of PoolState and Snapshot."""
    if paused_until is None or paused_until <= tx.now:  # seldom paused: the clock is not read
        return {"paused": False}
    left = None if paused_until == FOREVER else paused_until - tx.now
    return {"paused": True, "paused_seconds": left, "pause_reason": reason}


def configure(tx: SqlTransaction, pool: str, settings: str, version: int | None) -> bool:
    row = tx.run(tx.sql.pools.LOCK, (pool,)).fetchone()
    if row is None and version in (None, 0):
        tx.run(tx.sql.pools.ADD, (pool,))
        row = tx.run(tx.sql.pools.LOCK, (pool,)).fetchone()
    stored, current = row or ("{}", 0)
    merged = jsontext.dumps({**jsontext.loads(stored), **jsontext.loads(settings)})
    if version not in (None, current):
        return tx.again and current == version + 1 and merged == stored  # the lost try did it
    tx.run(tx.sql.pools.CONFIGURE, (pool, merged))
    return True


def pause(tx: SqlTransaction, pool: str, seconds: float | None, reason: str | None) -> None:
    until = FOREVER if seconds is None else tx.now + seconds if seconds else None
    tx.run(tx.sql.pools.PAUSE, (pool, until, None if until is None else reason))
    tx.wake(pool)


def hold_off(tx: SqlTransaction, pool: str, seconds: float, reason: str | None) -> None:
    tx.run(tx.sql.pools.HOLD_OFF, (pool, tx.now + seconds, reason))


def request_check(tx: SqlTransaction, pool: str, max_workers: int) -> bool:
    tx.check_leases()
    row = tx.run(tx.sql.pools.LOCK_CHECK, (pool,)).fetchone()
    if row is None or (row[0] is not None and tx.now - row[0] < CHECK_SECONDS):
        return False
    starting, active, idle = tx.run(tx.sql.pools.FLEET, (pool, tx.now)).fetchone()
    if starting + active >= max_workers:
        return False
    waiting = items.counts(tx, pool).ready
    if not waiting and not starting and not active:
        return _request_wait(tx, pool, row[1])
    if waiting <= starting + idle:
        return False
    tx.run(tx.sql.pools.ASK, (pool, tx.now))
    return True


def _request_wait(tx: SqlTransaction, pool: str, awaited_at: float | None) -> bool:
    """No worker is there, and all work is delayed: one process has to wait for the first of it."""
    due = tx.one(tx.sql.pools.NEXT_DUE, (pool,))
    if due is None or (awaited_at is not None and tx.now < awaited_at <= due):
        return False
    tx.run(tx.sql.pools.ASK, (pool, tx.now))
    tx.run(tx.sql.pools.AWAIT, (pool, due))
    return True


def begin_check(tx: SqlTransaction, pool: str) -> None:
    tx.touch()
    tx.run(tx.sql.pools.ASK, (pool, None))


def purge(tx: SqlTransaction, pool: str, limit: int) -> int:
    from sprat.store.sql import statistics

    settings = state(tx, pool).settings
    keep = {
        model.DONE: settings.keep_done_seconds,
        model.POISONED: settings.keep_poisoned_seconds,
        model.CANCELLED: settings.keep_cancelled_seconds,
    }
    deleted = 0
    for status, seconds in keep.items():
        if seconds is not None:
            deleted += items.forget(tx, pool, status, tx.now - seconds, limit - deleted)
    tx.run(tx.sql.pools.FORGET_WORKERS, (pool, tx.now - KEEP_WORKERS_SECONDS))
    tx.run(tx.sql.pools.FORGET_DECISIONS, (pool, tx.now - KEEP_DECISIONS_SECONDS))
    tx.run(tx.sql.pools.FORGET_TURNS, (pool, KEEP_TURNS))
    statistics.roll_up(tx, pool)
    return deleted
