"""The verbs of a scaling pass, as functions of the state and the time."""

from __future__ import annotations

from sprat.core import histogram, model, payload, reason_labels, tenant_limits
from sprat.store.memory import registry
from sprat.store.memory.state import WorkerEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.memory.state import PoolRecord, StoreState

CHECK_SECONDS = 10.0  # a pass that was asked for has begun by then, or its starter died


def request_check(state: StoreState, name: str, max_workers: int, now: float) -> bool:
    """True for the caller that has to start a scaling pass."""
    state.touch(now)
    pool = state.look(name)
    if pool.check_asked_at is not None and now - pool.check_asked_at < CHECK_SECONDS:
        return False
    fleet = state.workers_of(name, None, now)
    starting = sum(worker.status == model.STARTING for worker in fleet)
    active = [worker for worker in fleet if worker.status == model.ACTIVE]
    idle = sum(not worker.claims and not worker.is_suspended for worker in active)
    if starting + len(active) >= max_workers:
        return False
    waiting = pool.counts().ready
    if not waiting and not starting and not active:
        return _request_wait(pool, now)
    if waiting <= starting + idle:
        return False
    pool.check_asked_at = now
    return True


def _request_wait(pool: PoolRecord, now: float) -> bool:
    """No worker is there, and all work is delayed: a process has to wait for the first of it."""
    due = min((item.ready_at for item in pool.delayed), default=None)
    if due is None or (pool.awaited_at is not None and now < pool.awaited_at <= due):
        return False
    pool.check_asked_at = now
    pool.awaited_at = due
    return True


def begin_check(state: StoreState, name: str, now: float) -> None:
    state.touch(now)
    state.look(name).check_asked_at = None


def observe(
    state: StoreState, name: str, group: str | None, window: float, now: float
) -> model.Snapshot:
    pool = state.look(name)
    scale_set = state.scale_set(name, group)
    return model.Snapshot(
        pool=name,
        group=group,
        version=scale_set.version,
        now=now,
        counts=pool.counts(group),
        held=_held(pool, group),
        workers=tuple(worker.as_record() for worker in state.workers_of(name, group, now)),
        oldest_ready_seconds=_oldest_ready_seconds(pool, group, now),
        next_due_seconds=_next_due_seconds(pool, group, now),
        paused=pool.is_paused(now),
        paused_seconds=pool.paused_seconds(now),
        pause_reason=pool.pause_reason if pool.is_paused(now) else None,
        parked=_parked(pool, group),
        last_up_at=scale_set.last_up_at,
        last_down_at=scale_set.last_down_at,
        launch_failures=scale_set.launch_failures,
        last_launch_failure_at=scale_set.last_launch_failure_at,
        stats=pool.ledger.stats(now, window),
    )


def _held(pool: PoolRecord, group: str | None) -> int:
    if not tenant_limits.are_set(pool.settings):
        return 0
    ready: dict[str, int] = {}
    for item in pool.ready:
        if item.tenant is not None and (group is None or item.group == (group or None)):
            ready[item.tenant] = ready.get(item.tenant, 0) + 1
    return tenant_limits.held(pool.settings, ready, pool.running)


def _oldest_ready_seconds(pool: PoolRecord, group: str | None, now: float) -> float | None:
    fits = (item for item in pool.ready if group is None or item.group == (group or None))
    oldest = min((item.ready_at for item in fits), default=None)
    return None if oldest is None else now - oldest


def _next_due_seconds(pool: PoolRecord, group: str | None, now: float) -> float | None:
    fits = (item for item in pool.delayed if group is None or item.group == (group or None))
    first = min((item.ready_at for item in fits), default=None)
    return None if first is None else first - now


def _parked(pool: PoolRecord, group: str | None) -> dict[str, int]:
    parked: dict[str, int] = {}
    for item in pool.parked.values():
        if group is None or item.group == (group or None):
            parked[item.task or ""] = parked.get(item.task or "", 0) + 1
    return parked


def record(
    state: StoreState, version: int, decision: model.Decision, now: float
) -> model.RecordedDecision | None:
    state.touch(now)
    scale_set = state.scale_set(decision.pool, decision.group)
    if scale_set.version != version:
        return None
    if decision.launch:
        registry.reap(state, decision.pool, None, now)
    if not _fits(state, decision, now):
        return None
    state.scale_sets[decision.pool, decision.group] = scale_set
    scale_set.version += 1
    if decision.direction == "up":
        scale_set.last_up_at = now
    elif decision.direction == "down":
        scale_set.last_down_at = now
    recorded = model.RecordedDecision(
        version=scale_set.version,
        at=now,
        pool=decision.pool,
        group=decision.group,
        policy=decision.policy,
        direction=decision.direction,
        current=decision.current,
        desired=decision.desired,
        reason=decision.reason,
        inputs=dict(decision.inputs),
        launched=tuple(_reserve(state, decision, now) for _ in range(decision.launch)),
        drained=tuple(w for w in decision.drain if _drain(state, w, now, decision.reason)),
    )
    scale_set.decisions.append(recorded)
    scale_set.decided[decision.direction, reason_labels.number(decision.reason)] += 1
    return recorded


def _fits(state: StoreState, decision: model.Decision, now: float) -> bool:
    """Whether the fleet stays within its maximum; asked while recording, for others launch too."""
    if decision.launch <= 0:
        return True
    fleet = state.workers_of(decision.pool, decision.group, now)
    counted = sum(worker.status in (model.STARTING, model.ACTIVE) for worker in fleet)
    return counted + decision.launch <= decision.max_workers


def _reserve(state: StoreState, decision: model.Decision, now: float) -> str:
    worker = WorkerEntry("w-" + payload.new_id(), model.STARTING, now)
    worker.pool_id = decision.pool
    worker.launched_for = decision.group
    needed = () if decision.group is None else (decision.group,)
    worker.capabilities = tuple(dict.fromkeys((*decision.capabilities, *needed)))
    worker.lease_seconds = decision.start_deadline_seconds
    worker.lease_until = now + decision.start_deadline_seconds
    state.workers[worker.worker_id] = worker
    return worker.worker_id


def _drain(state: StoreState, worker_id: str, now: float, reason: str) -> bool:
    worker = state.workers.get(worker_id)
    if worker is None or worker.status not in (model.STARTING, model.ACTIVE):
        return False
    registry.drain(state, worker, now, reason)
    return True


def decisions(
    state: StoreState, name: str, group: str | None, limit: int
) -> list[model.RecordedDecision]:
    """Those of one group, or without a group those of the whole pool."""
    recorded = [
        decision
        for (pool, of_group), scale_set in state.scale_sets.items()
        if pool == name and group in (None, of_group)
        for decision in scale_set.decisions
    ]
    recorded.sort(key=lambda decision: (decision.at, decision.version), reverse=True)
    return recorded[:limit]


def totals(state: StoreState, name: str) -> model.Totals:
    rows = state.look(name).ledger.rows()
    for (pool, _), scale_set in state.scale_sets.items():
        if pool == name:
            rows += [(*key, n, 0.0, 0.0) for key, n in scale_set.decided.items()]
    return histogram.totals(rows)
