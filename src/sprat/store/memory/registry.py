"""The verbs about workers, as functions of the state and the time."""

from __future__ import annotations

import json

from sprat.core import leases, model, payload
from sprat.core.errors import UnknownWorker
from sprat.store.backend import too_late
from sprat.store.memory import claims, work
from sprat.store.memory.state import WorkerEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.memory.state import StoreState

RANK = {
    model.STARTING: 0,
    model.ACTIVE: 1,
    model.TERMINATING: 2,
    model.TERMINATED: 3,
    model.LOST: 3,  # both are ends: from neither leads a way to the other
}

NEVER_REGISTERED = "launched, but did not register in time"


def register(state: StoreState, new: model.WorkerRegistration, now: float) -> model.WorkerRecord:
    worker = state.workers.get(new.worker_id)
    if worker is None and new.reserved:
        raise UnknownWorker(f"no launch was reserved for worker {new.worker_id!r}")
    state.touch(now)
    if worker is None:
        worker = state.workers[new.worker_id] = WorkerEntry(new.worker_id, model.ACTIVE, now)
    elif new.reserved and worker.status != model.STARTING:  # registered before, or given up
        return too_late(worker.as_record(), new)
    claims.release_all(state, worker, now, reason="it registered again")
    _enrol(worker, new, now)
    _move(state, worker, model.ACTIVE, now)
    worker.reason = None
    work.unpark(state, worker, new.tasks, now)
    return worker.as_record()


def _enrol(worker: WorkerEntry, new: model.WorkerRegistration, now: float) -> None:
    worker.incarnation += 1
    worker.pool_id = new.pool_id or worker.pool_id
    worker.host = new.host
    worker.pid = new.pid
    launched_with = worker.capabilities if new.reserved else ()
    worker.capabilities = tuple(dict.fromkeys((*launched_with, *new.capabilities)))
    worker.lease_seconds = new.lease_seconds
    worker.metadata = dict(new.metadata)
    worker.started_at = now
    worker.renew_lease(now)


def _move(
    state: StoreState, worker: WorkerEntry, status: str, now: float, reason: str | None = None
) -> None:
    if worker.status == model.STARTING and status == model.ACTIVE:
        state.scale_set(worker.pool_id or "", worker.launched_for).launch_failures = 0
    worker.status = status
    worker.reason = worker.reason if reason is None else reason
    worker.ended_at = now if status in model.ENDED else None


def heartbeat(
    state: StoreState, ref: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef], now: float
) -> model.Heartbeat:
    worker = state.worker(ref.worker_id)
    state.touch(now)
    current = worker.is_current(ref.incarnation)
    if current and worker.status in (model.ACTIVE, model.TERMINATING):
        if metadata is not None:
            merged = payload.merged_metadata(json.dumps(worker.metadata), metadata)
            worker.metadata = json.loads(merged)
        worker.renew_lease(now)
    status = worker.status if current else model.LOST
    return model.Heartbeat(status=status, lost=lost(state, holding))


def lost(state: StoreState, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
    return tuple(claim.item_id for claim in holding if not _is_held(state, claim))


def keep_alive(state: StoreState, worker_ids: Sequence[str], now: float) -> int:
    state.touch(now)
    workers = [state.workers[key] for key in set(worker_ids) if key in state.workers]
    live = [worker for worker in workers if worker.status in model.LIVE]
    for worker in live:
        worker.renew_lease(now)
    return len(live)


def _is_held(state: StoreState, claim: ClaimRef) -> bool:
    item = state.items.get(claim.item_id)
    return item is not None and item.is_held_with(claim.token)


def update_status(
    state: StoreState,
    ref: WorkerRef,
    status: str,
    now: float,
    *,
    reason: str | None,
    started: Sequence[str] | None,
) -> bool:
    worker = state.worker(ref.worker_id)
    state.touch(now)
    if not worker.is_current(ref.incarnation):
        return False
    if worker.status == status:
        return True
    if RANK[status] <= RANK[worker.status]:
        return False
    if status == model.TERMINATING:
        drain(state, worker, now, reason)
    elif status == model.LOST:
        lose(state, worker, now, reason=reason, started=started)
    else:
        _move(state, worker, status, now, reason)
        if status == model.TERMINATED:
            claims.hand_back_all(state, worker, now)
    return True


def drain(state: StoreState, worker: WorkerEntry, now: float, reason: str | None) -> None:
    """Tell a worker to leave; one that is still being launched is given up."""
    given_up = worker.status == model.STARTING
    _move(state, worker, model.TERMINATED if given_up else model.TERMINATING, now, reason)


def lose(
    state: StoreState,
    worker: WorkerEntry,
    now: float,
    *,
    reason: str | None,
    started: Sequence[str] | None = None,
    is_counted: bool = False,
) -> tuple[int, int]:
    """Mark a worker lost and release its items; how many, and how many were poisoned.
    `is_counted`: another launch that failed of the same cause was counted."""
    if worker.status == model.STARTING and worker.pool_id is not None and not is_counted:
        scale_set = state.scale_set(worker.pool_id, worker.launched_for)
        scale_set.launch_failures += 1
        scale_set.last_launch_failure_at = now
    _move(state, worker, model.LOST, now, reason)
    return claims.release_all(state, worker, now, reason=reason, started=started)


def reap(state: StoreState, pool: str | None, threshold: float | None, now: float) -> model.Reaped:
    state.touch(now)
    workers: list[str] = []
    expired: list[str] = []
    failed: set[tuple[str | None, str | None]] = set()
    released = poisoned = 0
    for worker in state.by_age():
        if pool is not None and worker.pool_id != pool:
            continue
        reason = _stale(worker, threshold, now)
        if reason is None:
            continue
        is_launch = worker.status == model.STARTING
        (expired if is_launch else workers).append(worker.worker_id)
        launched_for = (worker.pool_id, worker.launched_for)
        freed, spent = lose(state, worker, now, reason=reason, is_counted=launched_for in failed)
        failed |= {launched_for} if is_launch else set()
        released += freed
        poisoned += spent
    return model.Reaped(
        workers=tuple(workers), released=released, poisoned=poisoned, expired=tuple(expired)
    )


def _stale(worker: WorkerEntry, threshold: float | None, now: float) -> str | None:
    """Why this worker has to be taken for dead, or None."""
    if worker.status not in model.LIVE:
        return None
    if worker.status == model.STARTING:
        return NEVER_REGISTERED if worker.lease_until <= now else None
    if threshold is None:
        is_stale = worker.lease_until <= now
    else:
        is_stale = now - worker.last_heartbeat > threshold
    return leases.why_lost(threshold) if is_stale else None


def listed(state: StoreState, which: model.WorkerFilter, now: float) -> list[model.WorkerRecord]:
    return [worker.as_record() for worker in state.by_age() if _fits(worker, which, now)]


def _fits(worker: WorkerEntry, which: model.WorkerFilter, now: float) -> bool:
    statuses = (which.status,) if isinstance(which.status, str) else which.status
    if statuses is not None and worker.status not in statuses:
        return False
    if which.capability is not None and which.capability not in worker.capabilities:
        return False
    if which.pool_id is not None and worker.pool_id != which.pool_id:
        return False
    threshold = which.stale_threshold_seconds
    return threshold is None or now - worker.last_heartbeat > threshold
