"""Scaling decisions: what a pass sees, and how it is recorded before anybody is launched."""

from __future__ import annotations

from sprat.core import jsontext, model, tenant_limits
from sprat.core.payload import settings_from
from sprat.store.backend import WorkerRef
from sprat.store.postgres import marks, workers
from sprat.store.postgres.rows import WORKER_COLUMNS
from sprat.store.sql import items, pools, statistics
from sprat.store.sql.rows import worker_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.store.postgres.transaction import PostgresTransaction

SCALE_SET = """
SELECT version, last_up_at, last_down_at, launch_failures, last_launch_failure_at
FROM sprat.scale_set WHERE pool_name = $1 AND grp = $2
"""
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('sprat.scaling ' || $1, 0))"
POOL = """
SELECT paused_until, pause_reason, has_tenants, settings FROM sprat.pool WHERE name = $1
"""
READY_BY_TENANT = """
SELECT tenant, count(*) FROM sprat.work_pool
WHERE pool_name = $1 AND status = 'pending' AND run_at IS NULL AND tenant <> ''
  AND ($2::text IS NULL OR grp = $2) GROUP BY tenant
"""
RUNNING = """
SELECT tenant, count(*) FROM sprat.work_pool
WHERE pool_name = $1 AND status = 'claimed' AND tenant <> '' GROUP BY tenant
"""
LIVE = f"""
SELECT {WORKER_COLUMNS} FROM sprat.worker_registry
WHERE pool_id = $1 AND status IN ('starting', 'active', 'terminating') AND lease_until > $2
  AND ($3::text IS NULL OR $3 = ANY (capabilities))
ORDER BY started_at, worker_id
"""
COUNT_LIVE = """
SELECT count(*) FROM sprat.worker_registry
WHERE pool_id = $1 AND status IN ('starting', 'active') AND lease_until > $2
  AND ($3::text IS NULL OR $3 = ANY (capabilities))
"""
# The ready item that was pushed first: the least of those that are first in a lane's priority.
OLDEST = """
WITH RECURSIVE lane AS (
    (SELECT tenant, grp, priority, seq FROM sprat.work_pool
     WHERE pool_name = $1 AND status = 'pending' AND run_at IS NULL
     ORDER BY tenant, grp, priority DESC, seq LIMIT 1)
    UNION ALL
    SELECT next.tenant, next.grp, next.priority, next.seq FROM lane, LATERAL (
        (SELECT 1 AS rank, w.tenant, w.grp, w.priority, w.seq FROM sprat.work_pool w
         WHERE pool_name = $1 AND status = 'pending' AND run_at IS NULL
           AND w.tenant = lane.tenant AND w.grp = lane.grp AND w.priority < lane.priority
         ORDER BY w.priority DESC, w.seq LIMIT 1)
        UNION ALL
        (SELECT 2, w.tenant, w.grp, w.priority, w.seq FROM sprat.work_pool w
         WHERE pool_name = $1 AND status = 'pending' AND run_at IS NULL
           AND (w.tenant, w.grp) > (lane.tenant, lane.grp)
         ORDER BY w.tenant, w.grp, w.priority DESC, w.seq LIMIT 1)
        ORDER BY rank LIMIT 1) AS next)
SELECT ready_at FROM sprat.work_pool
WHERE pool_name = $1 AND seq = (
    SELECT min(seq) FROM lane WHERE $2::text IS NULL OR grp = $2)
"""
OLDEST_DUE = """
SELECT min(run_at) FROM sprat.work_pool
WHERE pool_name = $1 AND status = 'pending' AND run_at <= $2 AND ($3::text IS NULL OR grp = $3)
"""
NEXT_DUE = """
SELECT min(run_at) FROM sprat.work_pool
WHERE pool_name = $1 AND status = 'pending' AND run_at > $3 AND ($2::text IS NULL OR grp = $2)
"""
RECORD = """
INSERT INTO sprat.scale_set AS s (pool_name, grp, version, last_up_at, last_down_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (pool_name, grp) DO UPDATE SET version = excluded.version,
    last_up_at = coalesce(excluded.last_up_at, s.last_up_at),
    last_down_at = coalesce(excluded.last_down_at, s.last_down_at)
"""
RESERVE = """
INSERT INTO sprat.worker_registry (worker_id, status, pool_id, grp, capabilities, started_at,
    last_heartbeat, lease_seconds, lease_until)
VALUES ($1, 'starting', $2, $3, $4::text[], $5, $5, $6, $5::float8 + $6)
"""
KEEP = """
INSERT INTO sprat.decision
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text[], $12::text[])
"""
_DECISION = """
SELECT version, at, pool_name, grp, policy, direction, current, desired, reason, inputs,
       launched, drained
FROM sprat.decision
"""
DECISIONS = f"""{_DECISION}
WHERE pool_name = $1 AND ($2::text IS NULL OR grp = $2) ORDER BY at DESC, version DESC LIMIT $3
"""
DECISION = f"{_DECISION} WHERE pool_name = $1 AND grp = $2 AND version = $3"
DECISION_FIELDS = (
    *("version", "at", "pool", "group", "policy", "direction", "current", "desired", "reason"),
    *("inputs", "launched", "drained"),
)


def observe(tx: PostgresTransaction, pool: str, group: str | None, window: float) -> model.Snapshot:
    version, last_up, last_down, failures, failed_at = _scale_set(tx, pool, group)
    row = tx.run(POOL, (pool,)).fetchone() or (None, None, False, "")
    paused_until, pause_reason, has_tenants, settings = row
    live = tx.run(LIVE, (pool, tx.now, group)).fetchall()
    return model.Snapshot(
        pool=pool,
        group=group,
        version=version,
        now=tx.now,
        counts=items.counts(tx, pool, group),
        held=_held(tx, pool, group, settings_from(settings)) if has_tenants else 0,
        workers=tuple(worker_of(tx, row) for row in live),
        oldest_ready_seconds=_oldest(tx, pool, group),
        next_due_seconds=_next_due(tx, pool, group),
        **pools.pause_of(tx, paused_until, pause_reason),
        parked=items.parked(tx, pool, group),
        last_up_at=last_up,
        last_down_at=last_down,
        launch_failures=failures,
        last_launch_failure_at=failed_at,
        stats=statistics.stats(tx, pool, window),
    )


def _held(
    tx: PostgresTransaction, pool: str, group: str | None, settings: model.PoolSettings
) -> int:
    """Counts the ready items of tenants, where limits are set: finished ones are not visited."""
    if not tenant_limits.are_set(settings):
        return 0
    ready: dict[str, int] = dict(tx.run(READY_BY_TENANT, (pool, group)).fetchall())
    return tenant_limits.held(settings, ready, dict(tx.run(RUNNING, (pool,)).fetchall()))


def _oldest(tx: PostgresTransaction, pool: str, group: str | None) -> float | None:
    ready = tx.one(OLDEST, (pool, group))
    due = tx.one(OLDEST_DUE, (pool, tx.now, group))
    since = [moment for moment in (ready, due) if moment is not None]
    return max(0.0, tx.now - min(since)) if since else None


def _next_due(tx: PostgresTransaction, pool: str, group: str | None) -> float | None:
    due = tx.one(NEXT_DUE, (pool, group, tx.now))
    return None if due is None else float(due) - tx.now


def _scale_set(tx: PostgresTransaction, pool: str, group: str | None) -> tuple[Any, ...]:
    row = tx.run(SCALE_SET, (pool, group or "")).fetchone()
    return row if row is not None else (0, None, None, 0, None)


def record(
    tx: PostgresTransaction, version: int, decision: model.Decision, worker_ids: Sequence[str]
) -> model.RecordedDecision | None:
    """`worker_ids` are for the reservations, chosen by the caller: if the reply gets lost, they
    tell the repetition that the decision is its own."""
    pool, group = decision.pool, decision.group
    tx.run(LOCK, (pool,))
    marks.check(tx)
    if _scale_set(tx, pool, group)[0] != version:
        return _recorded_before(tx, version, decision, worker_ids) if tx.again else None
    if decision.launch:
        workers.reap_checked(tx, pool, None)  # or who is not counted now could come back later
    live = tx.one(COUNT_LIVE, (pool, tx.now, group))
    if decision.launch and live + decision.launch > decision.max_workers:
        return None
    _reserve(tx, decision, worker_ids)
    drained = [w for w in decision.drain if _drain(tx, w, decision.reason)]
    up = tx.now if decision.direction == "up" else None
    down = tx.now if decision.direction == "down" else None
    tx.run(RECORD, (pool, group or "", version + 1, up, down))
    row = (
        *(pool, group or "", version + 1, tx.now, decision.policy, decision.direction),
        *(decision.current, decision.desired, decision.reason),
        *(jsontext.dumps(dict(decision.inputs)), list(worker_ids), drained),
    )
    tx.run(KEEP, row)
    statistics.count_decision(tx, decision)
    return _decision_of((version + 1, tx.now, pool, group or "", *row[4:]))


def _recorded_before(
    tx: PostgresTransaction, version: int, decision: model.Decision, worker_ids: Sequence[str]
) -> model.RecordedDecision | None:
    row = tx.run(DECISION, (decision.pool, decision.group or "", version + 1)).fetchone()
    if row is None:
        return None
    found = _decision_of(row)
    is_ours = found.launched == tuple(worker_ids) and found.reason == decision.reason
    return found if is_ours else None


def _reserve(tx: PostgresTransaction, decision: model.Decision, worker_ids: Sequence[str]) -> None:
    capabilities = list(decision.capabilities)
    if decision.group is not None and decision.group not in capabilities:
        capabilities.append(decision.group)
    about = (decision.pool, decision.group or "", capabilities, tx.now)
    deadline = decision.start_deadline_seconds
    tx.run_many(RESERVE, [(worker_id, *about, deadline) for worker_id in worker_ids])


def _drain(tx: PostgresTransaction, worker_id: str, reason: str) -> bool:
    record = workers.get(tx, worker_id)
    if record is None or record.status not in (model.STARTING, model.ACTIVE):
        return False
    return workers.update_status(
        tx, WorkerRef(worker_id=worker_id), model.TERMINATING, reason, None
    )


def decisions(
    tx: PostgresTransaction, pool: str, group: str | None, limit: int
) -> list[model.RecordedDecision]:
    return [_decision_of(row) for row in tx.run(DECISIONS, (pool, group, limit)).fetchall()]


def _decision_of(row: tuple[Any, ...]) -> model.RecordedDecision:
    values = dict(zip(DECISION_FIELDS, row, strict=True))
    values["group"] = values["group"] or None
    values["inputs"] = jsontext.loads(values["inputs"])
    values["launched"] = tuple(values["launched"])
    values["drained"] = tuple(values["drained"])
    return model.RecordedDecision(**values)
