"""Pools themselves: settings, pause, retention."""

from __future__ import annotations

from sprat.core import jsontext, model
from sprat.core.payload import settings_from
from sprat.store.postgres import items, marks
from sprat.store.postgres.rows import SUSPENDED
from sprat.store.sql import statistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.postgres.connections import Sessions
    from sprat.store.postgres.transaction import PostgresTransaction

FOREVER = 9e99
KEEP_WORKERS_SECONDS = 86400.0
KEEP_DECISIONS_SECONDS = 30 * 86400.0
CHECK_SECONDS = 10.0  # a pass that was asked for has begun by then, or its starter died
KEEP_TURNS = 100_000  # a tenant whose last turn is further back counts as new

NAMES = "SELECT name FROM sprat.pool ORDER BY name"
STATE = """
SELECT settings, version, paused_until, pause_reason, sprat.clock()
FROM sprat.pool WHERE name = $1
"""
ADD = "INSERT INTO sprat.pool (name) VALUES ($1) ON CONFLICT DO NOTHING"
LOCK = "SELECT settings, version FROM sprat.pool WHERE name = $1 FOR NO KEY UPDATE"
CONFIGURE = "UPDATE sprat.pool SET settings = $2, version = version + 1 WHERE name = $1"
PAUSE = """
INSERT INTO sprat.pool (name, paused_until, pause_reason) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE
SET paused_until = excluded.paused_until, pause_reason = excluded.pause_reason
"""
HOLD_OFF = """
INSERT INTO sprat.pool AS p (name, paused_until, pause_reason) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE
SET paused_until = excluded.paused_until, pause_reason = excluded.pause_reason
WHERE excluded.paused_until > coalesce(p.paused_until, 0)
"""
WAS_ASKED = """
SELECT check_asked_at IS NOT NULL AND sprat.clock() - check_asked_at < $2
FROM sprat.pool WHERE name = $1
"""
LOCK_CHECK = """
SELECT check_asked_at, awaited_at FROM sprat.pool WHERE name = $1 FOR NO KEY UPDATE
"""
AWAIT = "UPDATE sprat.pool SET awaited_at = $2 WHERE name = $1"
NEXT_DUE = """
SELECT min(run_at) FROM sprat.work_pool
WHERE pool_name = $1 AND status = 'pending' AND run_at IS NOT NULL
"""
ASK = "UPDATE sprat.pool SET check_asked_at = $2 WHERE name = $1"
FLEET = f"""
SELECT count(*) FILTER (WHERE status = 'starting'), count(*) FILTER (WHERE status = 'active'),
       count(*) FILTER (WHERE status = 'active' AND NOT {SUSPENDED} AND NOT EXISTS (
           SELECT 1 FROM sprat.work_pool i
           WHERE i.claimed_by = worker_id AND i.status = 'claimed'))
FROM sprat.worker_registry
WHERE pool_id = $1 AND status IN ('starting', 'active', 'terminating') AND lease_until > $2
"""
FORGET_WORKERS = """
DELETE FROM sprat.worker_registry WHERE ended_at < $2 AND (pool_id = $1 OR pool_id IS NULL)
"""
FORGET_DECISIONS = "DELETE FROM sprat.decision WHERE pool_name = $1 AND at < $2"
FORGET_TURNS = """
DELETE FROM sprat.tenant_turn
WHERE pool_name = $1 AND turn < (SELECT turn FROM sprat.pool WHERE name = $1) - $2::bigint
"""


def state(tx: PostgresTransaction, pool: str) -> model.PoolState:
    row = tx.run(STATE, (pool,)).fetchone()
    if row is None:
        return model.PoolState(name=pool, settings=model.PoolSettings())
    settings, version, paused_until, reason, now = row
    paused, left, reason = pause_at(now, paused_until, reason)
    return model.PoolState(
        name=pool,
        settings=settings_from(settings),
        version=version,
        paused=paused,
        paused_seconds=left,
        pause_reason=reason,
    )


def pause_at(
    now: float, until: float | None, reason: str | None
) -> tuple[bool, float | None, str | None]:
    """Whether the pool is paused, for how long (None: until resumed), and why."""
    if until is None or until <= now:
        return False, None, None
    return True, until - now if until < FOREVER else None, reason


def configure(tx: PostgresTransaction, pool: str, settings: str, version: int | None) -> bool:
    row = tx.run(LOCK, (pool,)).fetchone()
    if row is None and version in (None, 0):
        tx.run(ADD, (pool,))
        row = tx.run(LOCK, (pool,)).fetchone()
    stored, current = row or ("{}", 0)
    merged = jsontext.dumps({**jsontext.loads(stored), **jsontext.loads(settings)})
    if version not in (None, current):
        return tx.again and current == version + 1 and merged == stored  # the lost try did it
    tx.run(CONFIGURE, (pool, merged))
    return True


def pause(tx: PostgresTransaction, pool: str, seconds: float | None, reason: str | None) -> None:
    until = FOREVER if seconds is None else tx.now + seconds if seconds else None
    tx.run(PAUSE, (pool, until, None if until is None else reason))
    tx.rings.add(pool)


def hold_off(tx: PostgresTransaction, pool: str, seconds: float, reason: str | None) -> None:
    tx.run(HOLD_OFF, (pool, tx.now + seconds, reason))


def begin_check(connections: Sessions, pool: str) -> None:
    marks.note(connections)
    connections.repeatable(lambda tx: tx.run(ASK, (pool, None)))


def request_check(connections: Sessions, pool: str, max_workers: int) -> bool:
    rows = connections.call(WAS_ASKED, (pool, CHECK_SECONDS))
    if not rows or rows[0][0]:
        return False  # the usual answer in a burst: without a lock
    marks.note(connections)
    return connections.write(_request_check, pool, max_workers)


def _request_check(tx: PostgresTransaction, pool: str, max_workers: int) -> bool:
    marks.check(tx)
    row = tx.run(LOCK_CHECK, (pool,)).fetchone()
    if row is None or (row[0] is not None and tx.now - row[0] < CHECK_SECONDS):
        return False
    starting, active, idle = tx.run(FLEET, (pool, tx.now)).fetchall()[0]
    if starting + active >= max_workers:
        return False
    waiting = items.counts(tx, pool).ready
    if not waiting and not starting and not active:
        return _request_wait(tx, pool, row[1])
    if waiting <= starting + idle:
        return False
    tx.run(ASK, (pool, tx.now))
    return True


def _request_wait(tx: PostgresTransaction, pool: str, awaited_at: float | None) -> bool:
    """Nobody is there, and all work is delayed: somebody has to wait for the first of it."""
    due = tx.one(NEXT_DUE, (pool,))
    if due is None or (awaited_at is not None and tx.now < awaited_at <= due):
        return False
    tx.run(ASK, (pool, tx.now))
    tx.run(AWAIT, (pool, due))
    return True


def purge(tx: PostgresTransaction, pool: str, limit: int) -> int:
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
