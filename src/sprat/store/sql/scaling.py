"""Scaling decisions: what a pass sees, and how it is recorded before any worker is launched."""

from __future__ import annotations

from sprat.core import jsontext, model, tenant_limits
from sprat.core.payload import settings_from
from sprat.store.backend import WorkerRef
from sprat.store.sql import items, pools, statistics, workers
from sprat.store.sql.rows import worker_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.store.sql.transaction import SqlTransaction

DECISION_FIELDS = (
    *("version", "at", "pool", "group", "policy", "direction", "current", "desired", "reason"),
    *("inputs", "launched", "drained"),
)


def observe(tx: SqlTransaction, pool: str, group: str | None, window: float) -> model.Snapshot:
    version, last_up, last_down, failures, failed_at = _scale_set(tx, pool, group)
    row = tx.run(tx.sql.scaling.POOL, (pool,)).fetchone() or (0, "", None, None)
    has_tenants, settings, *pause = row
    live = tx.rows(tx.sql.scaling.LIVE, (pool, tx.now, group))
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
        parked=items.parked(tx, pool, group),
        **pools.pause_of(tx, *pause),
        last_up_at=last_up,
        last_down_at=last_down,
        launch_failures=failures,
        last_launch_failure_at=failed_at,
        stats=statistics.stats(tx, pool, window),
    )


def _held(tx: SqlTransaction, pool: str, group: str | None, settings: model.PoolSettings) -> int:
    """Counts the ready items of tenants, where limits are set: finished ones are not visited."""
    if not tenant_limits.are_set(settings):
        return 0
    ready: dict[str, int] = dict(tx.rows(tx.sql.scaling.READY_BY_TENANT, (pool, group)))
    return tenant_limits.held(settings, ready, dict(tx.rows(tx.sql.scaling.RUNNING, (pool,))))


def _oldest(tx: SqlTransaction, pool: str, group: str | None) -> float | None:
    ready = tx.one(tx.sql.scaling.OLDEST, (pool, group))
    due = tx.one(tx.sql.scaling.OLDEST_DUE, (pool, tx.now, group))
    since = [moment for moment in (ready, due) if moment is not None]
    return max(0.0, tx.now - min(since)) if since else None


def _next_due(tx: SqlTransaction, pool: str, group: str | None) -> float | None:
    due = tx.one(tx.sql.scaling.NEXT_DUE, (pool, group, tx.now))
    return None if due is None else float(due) - tx.now


def _scale_set(tx: SqlTransaction, pool: str, group: str | None) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = tx.run(tx.sql.scaling.SCALE_SET, (pool, group or "")).fetchone()
    return row if row is not None else (0, None, None, 0, None)


def record(
    tx: SqlTransaction, version: int, decision: model.Decision, worker_ids: Sequence[str]
) -> model.RecordedDecision | None:
    """`worker_ids` are for the reservations, chosen by the caller: if the reply gets lost, they
    tell the repetition that the decision is its own."""
    pool, group = decision.pool, decision.group
    tx.lock("scaling", pool)
    tx.check_leases()
    if _scale_set(tx, pool, group)[0] != version:
        return _recorded_before(tx, version, decision, worker_ids) if tx.again else None
    # A worker that is not counted now must not come back later: reap, or look again when it is fair
    if decision.launch and workers.reap_checked(tx, pool, None) is None:
        return None
    live = tx.one(tx.sql.scaling.COUNT_LIVE, (pool, tx.now, group))
    if decision.launch and live + decision.launch > decision.max_workers:
        return None
    _reserve(tx, decision, worker_ids)
    drained = [w for w in decision.drain if _drain(tx, w, decision.reason)]
    up = tx.now if decision.direction == "up" else None
    down = tx.now if decision.direction == "down" else None
    tx.run(tx.sql.scaling.RECORD, (pool, group or "", version + 1, up, down))
    row = (
        *(pool, group or "", version + 1, tx.now, decision.policy, decision.direction),
        *(decision.current, decision.desired, decision.reason),
        *(jsontext.dumps(dict(decision.inputs)), tx.array(worker_ids), tx.array(drained)),
    )
    tx.run(tx.sql.scaling.KEEP, row)
    statistics.count_decision(tx, decision)
    return _decision_of(tx, (version + 1, tx.now, pool, group or "", *row[4:]))


def _recorded_before(
    tx: SqlTransaction, version: int, decision: model.Decision, worker_ids: Sequence[str]
) -> model.RecordedDecision | None:
    about = (decision.pool, decision.group or "", version + 1)
    row = tx.run(tx.sql.scaling.DECISION, about).fetchone()
    if row is None:
        return None
    recorded = _decision_of(tx, row)
    is_ours = recorded.launched == tuple(worker_ids) and recorded.reason == decision.reason
    return recorded if is_ours else None


def _reserve(tx: SqlTransaction, decision: model.Decision, worker_ids: Sequence[str]) -> None:
    capabilities = list(decision.capabilities)
    if decision.group is not None and decision.group not in capabilities:
        capabilities.append(decision.group)
    about = (decision.pool, decision.group or "", tx.array(capabilities), tx.now)
    deadline = decision.start_deadline_seconds
    tx.run_many(tx.sql.scaling.RESERVE, [(worker, *about, deadline) for worker in worker_ids])


def _drain(tx: SqlTransaction, worker_id: str, reason: str) -> bool:
    record = workers.get(tx, worker_id)
    if record is None or record.status not in (model.STARTING, model.ACTIVE):
        return False
    return workers.update_status(
        tx, WorkerRef(worker_id=worker_id), model.TERMINATING, reason, None
    )


def decisions(
    tx: SqlTransaction, pool: str, group: str | None, limit: int
) -> list[model.RecordedDecision]:
    rows = tx.rows(tx.sql.scaling.DECISIONS, (pool, group, limit))
    return [_decision_of(tx, row) for row in rows]


def _decision_of(tx: SqlTransaction, row: tuple[Any, ...]) -> model.RecordedDecision:
    values = dict(zip(DECISION_FIELDS, row, strict=True))
    values["group"] = values["group"] or None
    values["inputs"] = jsontext.loads(values["inputs"])
    values["launched"] = tx.texts(values["launched"])
    values["drained"] = tx.texts(values["drained"])
    return model.RecordedDecision(**values)
