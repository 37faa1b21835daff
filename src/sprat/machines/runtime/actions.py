"""The built-in actions. Each calls what the command line calls, and answers with plain data."""

from __future__ import annotations

from sprat.core import leases, model, payload
from sprat.core.errors import InvalidInput
from sprat.fleet import checker, policy_input, reaper, scaler
from sprat.fleet.decide import by_policy
from sprat.fleet.launcher import require_processor
from sprat.machines.runtime import launching
from sprat.worker.processor import Outcome, settlement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sprat.machines.runtime.arguments import Arguments
    from sprat.machines.runtime.host import MachineHost
    from sprat.machines.runtime.worker import MachineWorker

    Action = Callable[[MachineHost, Arguments], Any]


# -- scaling ------------------------------------------------------------------------------------


def get_pool_state(room: MachineHost, asked: Arguments) -> Any:
    """What waits in the pool and who works for it."""
    seen = room.store.pool(asked.pool()).observe()
    return {
        "pool_id": seen.pool,
        "queue_depth": seen.counts.ready,
        "active_workers": seen.active,
        "starting_workers": seen.starting,
        "idle_workers": seen.idle,
        "claimed": seen.counts.claimed,
        "delayed": seen.counts.delayed,
        "poisoned": seen.counts.poisoned,
        "paused": seen.paused,
    }


def calculate_spawn(room: MachineHost, asked: Arguments) -> Any:
    """How many workers the pool's own policy would launch now, at most `max_workers`."""
    pool = asked.pool()
    settings = checker.limited(room.store.pool(pool).state().settings, asked.whole("max_workers"))
    snapshot, decision = by_policy(room.store, pool, settings)
    policy_input.remember(room.store, snapshot, decision)
    return {"workers_to_spawn": decision.launch, "reason": decision.reason}


def spawn_workers(room: MachineHost, asked: Arguments) -> Any:
    """Launch `workers_to_spawn` of the pool's own workers, as far as its maximum allows."""
    pool, wanted = asked.pool(), asked.whole("workers_to_spawn", 0) or 0
    most = launching.limit_of(asked.context, asked.input)
    who = asked.machine.name
    settings = room.store.pool(pool).state().settings
    require_processor(settings, pool)
    reserved = launching.reserve(room.store, pool, settings, wanted, most=most, who=who)
    if reserved.launched:
        checker.launch(room.store, pool, settings, reserved.launched)
    room.launched = room.launched.plus(wanted, reserved.launched, reserved.reason)
    ids = list(reserved.launched)
    return {"spawned": len(ids), "spawned_ids": ids, "reason": reserved.reason}


def check(room: MachineHost, asked: Arguments) -> Any:
    """One whole scaling pass, as `sprat check`."""
    pool = asked.pool()
    require_processor(room.store.pool(pool).state().settings, pool)
    done = checker.check(
        room.store,
        pool,
        max_workers=asked.whole("max_workers"),
        min_workers=asked.whole("min_workers"),
    )
    return _plain(done)


def scale(room: MachineHost, asked: Arguments) -> Any:
    """Set the fleet to `target_workers`, as `sprat scale`."""
    target = asked.whole("target_workers")
    if target is None:
        raise InvalidInput("to how many workers? Give it target_workers")
    return _plain(scaler.scale(room.store, asked.pool(), target))


# -- being a worker -----------------------------------------------------------------------------


def register_worker(room: MachineHost, asked: Arguments) -> Any:
    """Register this machine as a worker; one that is registered already stays what it is."""
    return _worker(_member(room).join(asked.pool()))


def deregister_worker(room: MachineHost, asked: Arguments) -> Any:
    """Leave: `terminated`. What is still held goes back to the pool."""
    member = _member(room)
    member.leave(model.TERMINATED, "left")
    return {"worker_id": member.worker_id, "status": model.TERMINATED}


def check_status(room: MachineHost, asked: Arguments) -> Any:
    """Send a heartbeat, and say what this worker is now: `active`, or `terminating`."""
    member = _member(room)
    member.join(asked.pool())
    member.beat(now=True)
    status = model.TERMINATING if room.is_told_to_leave else member.status
    return {"worker_id": member.worker_id, "status": status}


def claim_job(room: MachineHost, asked: Arguments) -> Any:
    """Take the next job: `job` and `job_id`, both null when there is none."""
    member = _member(room)
    me = member.join(asked.pool())
    item = None if room.is_told_to_leave else room.store.pool(asked.pool()).claim(me)
    if item is None:
        return {"job": None, "job_id": None}
    member.hold(item)
    room.last_failure = None
    return {
        "job": item.data,
        "job_id": item.id,
        "attempt": item.attempts,
        "max_retries": item.max_retries,
    }


def complete_job(room: MachineHost, asked: Arguments) -> Any:
    """Keep `result` as the result of the job; `settled` is false when the claim was lost."""
    item = _held(room, asked)
    if item is None:
        return {"job_id": asked.get("job_id"), "settled": False}
    return _settled(room, item, room.store.pool(item.pool).complete(item, asked.get("result")))


def fail_job(room: MachineHost, asked: Arguments) -> Any:
    """Keep the last error with the job: it is tried again later, or poisoned."""
    item = _held(room, asked)
    if item is None:
        return {"job_id": asked.get("job_id"), "settled": False}
    pool = room.store.pool(item.pool)
    said = payload.error_text(asked.get("error"))
    outcome = room.last_failure or Outcome(ok=False, error=said or "failed")
    settled = pool.settle_many([settlement(item, outcome, pool.state().settings, None)])[0]
    return _settled(room, item, settled)


def hand_back_job(room: MachineHost, asked: Arguments) -> Any:
    """Give the job back as it was; the attempt is not counted."""
    item = _held(room, asked)
    if item is None:
        return {"job_id": asked.get("job_id"), "settled": False}
    return _settled(room, item, room.store.pool(item.pool).hand_back(item))


def push_job(room: MachineHost, asked: Arguments) -> Any:
    """Add `job` to the pool; with `key`, once."""
    item_id = room.store.pool(asked.pool()).push(
        asked.get("job"),
        max_attempts=asked.whole("max_attempts") or None,
        max_retries=asked.whole("max_retries") or None,
        key=asked.get("key"),
    )
    return {"job_id": item_id}


# -- reaping ------------------------------------------------------------------------------------


def list_stale_workers(room: MachineHost, asked: Arguments) -> Any:
    """Workers without a heartbeat for `stale_threshold_seconds`, twice the pool's heartbeat by
    default."""
    threshold = asked.number("stale_threshold_seconds")
    if threshold is None:
        threshold = 2 * room.store.pool(asked.pool()).state().settings.heartbeat_seconds
    found = room.store.workers.list(
        status=(model.ACTIVE, model.TERMINATING),
        stale_threshold_seconds=threshold,
        pool_id=asked.pool(),
    )
    return {"workers": [_worker(worker) for worker in found]}


def reap_worker(room: MachineHost, asked: Arguments) -> Any:
    """Mark `worker` lost and free its jobs, unless it has been heard of since."""
    worker = asked.get("worker")
    worker_id = worker.get("worker_id") if isinstance(worker, dict) else worker
    worker_id = worker_id or asked.get("worker_id")
    found = room.store.workers.get(payload.worker_id(worker_id))
    heard = worker.get("last_heartbeat") if isinstance(worker, dict) else None
    is_back = found is not None and heard is not None and found.last_heartbeat > heard
    if found is None or is_back:
        return {"worker_id": worker_id, "reaped": False}
    reason = leases.why_lost(asked.number("stale_threshold_seconds"))
    reaped = room.store.workers.update_status(found, model.LOST, reason=reason)
    return {"worker_id": worker_id, "reaped": reaped, "released": found.claims if reaped else 0}


def reap_stale_workers(room: MachineHost, asked: Arguments) -> Any:
    """One whole pass of the reaper over the pool, as `sprat reap`."""
    threshold = asked.number("stale_threshold_seconds")
    return _plain(reaper.reap(room.store, asked.pool(), threshold_seconds=threshold))


ACTIONS: dict[str, Action] = {
    action.__name__: action
    for action in (
        *(get_pool_state, calculate_spawn, spawn_workers, check, scale),
        *(register_worker, deregister_worker, check_status),
        *(claim_job, complete_job, fail_job, hand_back_job, push_job),
        *(list_stale_workers, reap_worker, reap_stale_workers),
    )
}


def _member(room: MachineHost) -> MachineWorker:
    if room.member is None:
        raise InvalidInput("this machine runs inside a worker: it cannot be another one")
    return room.member


def _held(room: MachineHost, asked: Arguments) -> model.WorkItem | None:
    held = _member(room).held
    return held.get(asked.get("job_id") or next(iter(held), ""))


def _settled(room: MachineHost, item: model.WorkItem, settled: bool) -> Any:
    _member(room).held.pop(item.id, None)
    return {"job_id": item.id, "settled": settled}


def _worker(worker: model.WorkerRecord) -> dict[str, Any]:
    return {
        "worker_id": worker.worker_id,
        "status": worker.status,
        "pool_id": worker.pool_id,
        "host": worker.host,
        "pid": worker.pid,
        "last_heartbeat": worker.last_heartbeat,
        "current_task_id": worker.current_task_id,
    }


def _plain(done: Any) -> dict[str, Any]:
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in done.as_dict().items()
    }
