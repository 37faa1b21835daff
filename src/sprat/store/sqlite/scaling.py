"""Scaling decisions: what a pass sees, and how it is recorded before anybody is launched."""

from __future__ import annotations

from sprat.core import jsontext, model, tenant_limits
from sprat.core.payload import new_id, settings_from
from sprat.store.backend import WorkerRef
from sprat.store.sql import items, pools, statistics
from sprat.store.sql.rows import worker_of
from sprat.store.sqlite import lanes, marks, workers
from sprat.store.sqlite.rows import READY, WORKER_COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.store.sqlite.busy_handler import Patience
    from sprat.store.sqlite.transaction import SqliteTransaction, WriteTransaction

SCALE_SET = """
SELECT version, last_up_at, last_down_at, launch_failures, last_launch_failure_at
FROM scale_set WHERE pool_name = ? AND grp = ?
"""
POOL = "SELECT has_tenants, settings, paused_until, pause_reason FROM pool WHERE name = ?"
READY_BY_TENANT = f"""
SELECT tenant, count(*) FROM work_pool
WHERE pool_name = ?1 AND {READY} AND tenant <> '' AND (?2 IS NULL OR grp = ?2) GROUP BY tenant
"""
LIVE = f"""
SELECT {WORKER_COLUMNS} FROM worker_registry
WHERE pool_id = ?1 AND status IN ('starting', 'active', 'terminating') AND lease_until > ?2
  AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(capabilities) WHERE value = ?3))
ORDER BY started_at, worker_id
"""
COUNT_LIVE = """
SELECT count(*) FROM worker_registry
WHERE pool_id = ?1 AND status IN ('starting', 'active', 'terminating') AND lease_until > ?2
  AND status <> 'terminating'
  AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(capabilities) WHERE value = ?3))
"""
# The ready item that was pushed first: the least of those that are first in a lane's priority.
OLDEST = f"""
WITH RECURSIVE lane (priority, tenant, grp, seq) AS (
    SELECT * FROM (
        SELECT priority, tenant, grp, seq FROM work_pool
        WHERE pool_name = ?1 AND {READY}
        ORDER BY tenant, grp, priority DESC, seq LIMIT 1)
    UNION ALL
    SELECT w.priority, w.tenant, w.grp, w.seq FROM lane JOIN work_pool w ON w.seq = coalesce(
        (SELECT seq FROM work_pool
         WHERE pool_name = ?1 AND {READY}
           AND tenant = lane.tenant AND grp = lane.grp AND priority < lane.priority
         ORDER BY priority DESC, seq LIMIT 1),
        (SELECT seq FROM work_pool
         WHERE pool_name = ?1 AND {READY} AND tenant = lane.tenant AND grp > lane.grp
         ORDER BY grp, priority DESC, seq LIMIT 1),
        (SELECT seq FROM work_pool
         WHERE pool_name = ?1 AND {READY} AND tenant > lane.tenant
         ORDER BY tenant, grp, priority DESC, seq LIMIT 1)))
SELECT ready_at FROM work_pool
WHERE seq = (SELECT min(seq) FROM lane WHERE ?2 IS NULL OR grp = ?2)
"""
OLDEST_DUE = """
SELECT min(run_at) FROM work_pool
WHERE pool_name = ?1 AND status = 'pending' AND run_at <= ?2 AND (?3 IS NULL OR grp = ?3)
"""
NEXT_DUE = """
SELECT min(run_at) FROM work_pool
WHERE pool_name = ?1 AND status = 'pending' AND run_at > ?3 AND (?2 IS NULL OR grp = ?2)
"""
RECORD = """
INSERT INTO scale_set (pool_name, grp, version, last_up_at, last_down_at)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET version = ?3, last_up_at = coalesce(?4, last_up_at),
    last_down_at = coalesce(?5, last_down_at)
"""
RESERVE = """
INSERT INTO worker_registry (worker_id, status, pool_id, grp, capabilities, started_at,
    last_heartbeat, lease_seconds, lease_until)
VALUES (?, 'starting', ?, ?, ?, ?, ?, ?, ?)
"""
KEEP = "INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
DECISIONS = """
SELECT version, at, pool_name, grp, policy, direction, current, desired, reason, inputs,
       launched, drained
FROM decision WHERE pool_name = ?1 AND (?2 IS NULL OR grp = ?2) ORDER BY at DESC, version DESC
LIMIT ?3
"""
DECISION_FIELDS = (
    *("version", "at", "pool", "group", "policy", "direction", "current", "desired", "reason"),
    *("inputs", "launched", "drained"),
)


def observe(tx: SqliteTransaction, pool: str, group: str | None, window: float) -> model.Snapshot:
    version, last_up, last_down, failures, failed_at = _scale_set(tx, pool, group)
    row = tx.run(POOL, (pool,)).fetchone() or (0, "", None, None)
    has_tenants, settings, *pause = row
    return model.Snapshot(
        pool=pool,
        group=group,
        version=version,
        now=tx.now,
        counts=items.counts(tx, pool, group),
        held=_held(tx, pool, group, settings_from(settings)) if has_tenants else 0,
        workers=tuple(worker_of(tx, row) for row in tx.run(LIVE, (pool, tx.now, group))),
        oldest_ready_seconds=_oldest(tx, pool, group),
        next_due_seconds=_next_due(tx, pool, group),
        parked=items.parked(tx, pool, group),
        **pools.pause_of(tx, *pause),
        last_up_at=last_up,
        last_down_at=last_down,
        launch_failures=failures,
        last_launch_failure_at=failed_at,
        stats=statistics.stats(tx, pool, window),
    )


def _held(tx: SqliteTransaction, pool: str, group: str | None, settings: model.PoolSettings) -> int:
    """Counts the ready items of tenants, where limits are set: finished ones are not visited."""
    if not tenant_limits.are_set(settings):
        return 0
    ready = dict(tx.run(READY_BY_TENANT, (pool, group)).fetchall())
    return tenant_limits.held(settings, ready, dict(tx.run(lanes.RUNNING, (pool,)).fetchall()))


def _oldest(tx: SqliteTransaction, pool: str, group: str | None) -> float | None:
    ready = tx.run(OLDEST, (pool, group)).get
    due = tx.run(OLDEST_DUE, (pool, tx.now, group)).get
    since = [moment for moment in (ready, due) if moment is not None]
    return max(0.0, tx.now - min(since)) if since else None


def _next_due(tx: SqliteTransaction, pool: str, group: str | None) -> float | None:
    due = tx.run(NEXT_DUE, (pool, group, tx.now)).get
    return None if due is None else float(due) - tx.now


def _scale_set(tx: SqliteTransaction, pool: str, group: str | None) -> tuple[Any, ...]:
    row = tx.run(SCALE_SET, (pool, group or "")).fetchone()
    return row if row is not None else (0, None, None, 0, None)


def record(
    tx: WriteTransaction, version: int, decision: model.Decision, patience: Patience
) -> model.RecordedDecision | None:
    marks.touch(tx)
    pool, group = decision.pool, decision.group
    if _scale_set(tx, pool, group)[0] != version:
        return None
    # Who is not counted now must not come back later: reap, or look again when that is fair.
    if decision.launch and workers.reap(tx, pool, None, patience) is None:
        return None
    live = tx.run(COUNT_LIVE, (pool, tx.now, group)).get
    if decision.launch and live + decision.launch > decision.max_workers:
        return None
    launched = tuple(_reserve(tx, decision) for _ in range(decision.launch))
    drained = tuple(w for w in decision.drain if _drain(tx, w, decision.reason))
    up = tx.now if decision.direction == "up" else None
    down = tx.now if decision.direction == "down" else None
    tx.run(RECORD, (pool, group or "", version + 1, up, down))
    row = (
        *(pool, group or "", version + 1, tx.now, decision.policy, decision.direction),
        *(decision.current, decision.desired, decision.reason),
        *(jsontext.dumps(dict(decision.inputs)), jsontext.dumps(launched), jsontext.dumps(drained)),
    )
    tx.run(KEEP, row)
    statistics.count_decision(tx, decision)
    return _decision_of((version + 1, tx.now, pool, group or "", *row[4:]))


def _reserve(tx: WriteTransaction, decision: model.Decision) -> str:
    worker_id = f"w-{new_id()}"
    capabilities = list(decision.capabilities)
    if decision.group is not None and decision.group not in capabilities:
        capabilities.append(decision.group)
    deadline = decision.start_deadline_seconds
    tx.run(
        RESERVE,
        (
            *(worker_id, decision.pool, decision.group or "", jsontext.dumps(capabilities)),
            *(tx.now, tx.now, deadline, tx.now + deadline),
        ),
    )
    return worker_id


def _drain(tx: WriteTransaction, worker_id: str, reason: str) -> bool:
    record = workers.get(tx, worker_id)
    if record is None or record.status not in (model.STARTING, model.ACTIVE):
        return False
    return workers.update_status(
        tx, WorkerRef(worker_id=worker_id), model.TERMINATING, reason, None
    )


def decisions(
    tx: SqliteTransaction, pool: str, group: str | None, limit: int
) -> list[model.RecordedDecision]:
    return [_decision_of(row) for row in tx.run(DECISIONS, (pool, group, limit))]


def _decision_of(row: tuple[Any, ...]) -> model.RecordedDecision:
    values = dict(zip(DECISION_FIELDS, row, strict=True))
    values["group"] = values["group"] or None
    values["inputs"] = jsontext.loads(values["inputs"])
    values["launched"] = tuple(jsontext.loads(values["launched"]))
    values["drained"] = tuple(jsontext.loads(values["drained"]))
    return model.RecordedDecision(**values)
