"""Pools themselves: settings, pause, retention."""

from __future__ import annotations

from sprat.core import jsontext, model
from sprat.core.payload import settings_from
from sprat.store.sqlite import items, marks
from sprat.store.sqlite.rows import LIVE, SUSPENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.store.sqlite.transaction import SqliteTransaction, WriteTransaction

FOREVER = 9e99
KEEP_WORKERS_SECONDS = 86400.0
KEEP_DECISIONS_SECONDS = 30 * 86400.0
CHECK_SECONDS = 10.0  # a pass that was asked for has begun by then, or its starter died
KEEP_TURNS = 100_000  # a tenant whose last turn is further back counts as new

NAMES = "SELECT name FROM pool ORDER BY name"
STATE = "SELECT settings, version, paused_until, pause_reason FROM pool WHERE name = ?"
CONFIGURE = """
INSERT INTO pool (name, settings, version) VALUES (?1, ?2, 1)
ON CONFLICT DO UPDATE SET settings = ?2, version = version + 1
"""
PAUSE = """
INSERT INTO pool (name, paused_until, pause_reason) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET paused_until = ?2, pause_reason = ?3
"""
HOLD_OFF = PAUSE + "WHERE coalesce(paused_until < ?2, TRUE)"
ASKED_AT = "SELECT check_asked_at FROM pool WHERE name = ?"
AWAITED_AT = "SELECT awaited_at FROM pool WHERE name = ?"
AWAIT = "UPDATE pool SET awaited_at = ?2 WHERE name = ?1"
NEXT_DUE = """
SELECT min(run_at) FROM work_pool
WHERE pool_name = ? AND status = 'pending' AND run_at IS NOT NULL
"""
ASK = "UPDATE pool SET check_asked_at = ?2 WHERE name = ?1"
FLEET = f"""
SELECT coalesce(sum(status = 'starting'), 0), coalesce(sum(status = 'active'), 0),
       coalesce(sum(status = 'active' AND NOT {SUSPENDED} AND NOT EXISTS (
           SELECT 1 FROM work_pool WHERE claimed_by = worker_id AND {LIVE})), 0)
FROM worker_registry
WHERE pool_id = ?1 AND status IN ('starting', 'active', 'terminating') AND lease_until > ?2
"""
FORGET_WORKERS = """
DELETE FROM worker_registry WHERE ended_at < ?2 AND (pool_id = ?1 OR pool_id IS NULL)
"""
FORGET_DECISIONS = "DELETE FROM decision WHERE pool_name = ? AND at < ?"
FORGET_TURNS = """
DELETE FROM tenant_turn
WHERE pool_name = ?1 AND turn < (SELECT turn FROM pool WHERE name = ?1) - ?2
"""


def names(tx: SqliteTransaction) -> list[str]:
    return [name for (name,) in tx.run(NAMES)]


def state(tx: SqliteTransaction, pool: str) -> model.PoolState:
    row = tx.run(STATE, (pool,)).fetchone()
    if row is None:
        return model.PoolState(name=pool, settings=model.PoolSettings())
    settings, version, *pause = row
    return model.PoolState(
        name=pool,
        settings=settings_from(settings),
        version=version,
        **pause_of(tx, *pause),
    )


def pause_of(
    tx: SqliteTransaction, paused_until: float | None, reason: str | None
) -> dict[str, Any]:
    """The fields about a pause of PoolState and Snapshot."""
    if paused_until is None or paused_until <= tx.now:  # seldom paused: the clock is not read
        return {"paused": False}
    left = None if paused_until == FOREVER else paused_until - tx.now
    return {"paused": True, "paused_seconds": left, "pause_reason": reason}


def configure(tx: WriteTransaction, pool: str, settings: str, version: int | None) -> bool:
    row = tx.run(STATE, (pool,)).fetchone()
    stored, current = (row[0], row[1]) if row else ("{}", 0)
    if version not in (None, current):
        return False
    merged = {**jsontext.loads(stored), **jsontext.loads(settings)}
    tx.run(CONFIGURE, (pool, jsontext.dumps(merged)))
    return True


def pause(tx: WriteTransaction, pool: str, seconds: float | None, reason: str | None) -> None:
    until = FOREVER if seconds is None else tx.now + seconds if seconds else None
    tx.run(PAUSE, (pool, until, reason))
    tx.rings = True


def hold_off(tx: WriteTransaction, pool: str, seconds: float, reason: str | None) -> None:
    tx.run(HOLD_OFF, (pool, tx.now + seconds, reason))


def request_check(tx: WriteTransaction, pool: str, max_workers: int) -> bool:
    marks.touch(tx)
    asked_at = tx.run(ASKED_AT, (pool,)).get
    if asked_at is not None and tx.now - asked_at < CHECK_SECONDS:
        return False
    starting, active, idle = tx.run(FLEET, (pool, tx.now)).get
    if starting + active >= max_workers:
        return False
    waiting = items.counts(tx, pool).ready
    if not waiting and not starting and not active:
        return _request_wait(tx, pool)
    if waiting <= starting + idle:
        return False
    tx.run(ASK, (pool, tx.now))
    return True


def _request_wait(tx: WriteTransaction, pool: str) -> bool:
    """Nobody is there, and all work is delayed: somebody has to wait for the first of it."""
    due = tx.run(NEXT_DUE, (pool,)).get
    awaited_at = tx.run(AWAITED_AT, (pool,)).get
    if due is None or (awaited_at is not None and tx.now < awaited_at <= due):
        return False
    tx.run(ASK, (pool, tx.now))
    tx.run(AWAIT, (pool, due))
    return True


def begin_check(tx: WriteTransaction, pool: str) -> None:
    marks.touch(tx)
    tx.run(ASK, (pool, None))


def purge(tx: WriteTransaction, pool: str, limit: int) -> int:
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
    tx.run(FORGET_WORKERS, (pool, tx.now - KEEP_WORKERS_SECONDS))
    tx.run(FORGET_DECISIONS, (pool, tx.now - KEEP_DECISIONS_SECONDS))
    tx.run(FORGET_TURNS, (pool, KEEP_TURNS))
    statistics.roll_up(tx, pool)
    return deleted
