"""The workers behind `POST /work/request`: registered when they ask, in the pool they work for.

Such a worker need not name a pool. It is registered in the pool that it gets work from, so that
the pool's figures and its scaling count it, and moves when another pool has work for it. All of it
blocks.
"""

from __future__ import annotations

from sprat.core import model, payload
from sprat.server import worker_secret
from sprat.server.http_error import HttpError
from sprat.server.route import RequestCall
from sprat.store.backend import Backend, WorkerRef

LEASE_SECONDS = 60.0  # of a worker that only ever asks for work


def known_worker(call: RequestCall) -> model.WorkerRecord:
    """The worker that asks, registered if it is new. One that holds work has to prove itself."""
    asked, backend = call.body, call.backend
    worker_id = payload.worker_id(asked.worker_id)
    worker = backend.worker(worker_id)
    pool = asked.pool or (None if worker is None else worker.pool_id) or _likely_pool(call)
    if worker is not None and _is_proven(call, worker):
        backend.heartbeat(_ref(worker), None, ())
        if pool in (None, worker.pool_id) or worker.claims or worker.status != model.ACTIVE:
            return worker
    elif worker is not None and worker.status in model.LIVE and worker.claims:
        raise HttpError(
            409, "busy", "this worker holds work: send its secret, or use another worker_id"
        )
    return _register(call, worker_id, pool)


def claim_from(
    call: RequestCall, worker: model.WorkerRecord, pool: str
) -> tuple[model.WorkerRecord, model.WorkItem | None]:
    """An item of this pool, and the worker, which belongs to the pool from then on. A worker that
    holds work stays where it is: a new registration would release what it holds."""
    backend = call.backend
    if worker.pool_id != pool:
        if not backend.wait(pool, _ref(worker), 0.0):
            return worker, None
        current = backend.worker(worker.worker_id)
        if current is not None and not current.claims:
            worker = _register(call, worker.worker_id, pool)
    items = backend.exchange(pool, _ref(worker), claim=1).items
    return worker, items[0] if items else None


def without_pool(backend: Backend, group: str | None, now: float) -> list[model.WorkerRecord]:
    """The workers that asked for work of any pool, and got none yet."""
    which = model.WorkerFilter(status=model.ACTIVE, capability=group)
    workers = backend.workers(which)
    return [one for one in workers if one.pool_id is None and one.lease_until > now]


def _is_proven(call: RequestCall, worker: model.WorkerRecord) -> bool:
    """Whether the request has the secret of this worker, and the worker is there."""
    secret = call.headers.get(worker_secret.HEADER, b"").decode("latin-1")
    if not secret or worker.status not in (model.ACTIVE, model.TERMINATING):
        return False
    full = call.full_worker(worker.worker_id)
    return call.state.secrets.proven(full, secret) == worker.incarnation


def _likely_pool(call: RequestCall) -> str | None:
    """Where a worker that named no pool will get its work: in the only pool there is, or in the
    first that has items or workers of its group."""
    pools = call.backend.pools()
    if len(pools) == 1:
        return pools[0]
    group = _group(call)
    if group is None:
        return None
    seen = ((pool, call.backend.observe(pool, group, 60.0)) for pool in pools)
    return next((pool for pool, one in seen if any(one.counts) or one.workers), None)


def _register(call: RequestCall, worker_id: str, pool: str | None) -> model.WorkerRecord:
    if call.state.is_leaving:
        raise call.state.leaving()
    group = _group(call)
    worker = call.backend.register(
        model.WorkerRegistration(
            worker_id=worker_id,
            pool_id=pool,
            capabilities=() if group is None else (group,),
            lease_seconds=LEASE_SECONDS,
        )
    )
    call.state.long_polls.worker_changed(call.full_worker(worker_id))
    return worker


def _group(call: RequestCall) -> str | None:
    return payload.label(call.body.machine_group, "machine_group")


def _ref(worker: model.WorkerRecord) -> WorkerRef:
    return WorkerRef(worker_id=worker.worker_id, incarnation=worker.incarnation)
