"""The verbs about items and pools, as functions of the state and the time."""

from __future__ import annotations

import math

from sprat.core import histogram, item_filter, model, payload
from sprat.core.errors import KeyConflict, UnknownWorker
from sprat.store.memory import claims
from sprat.store.memory.item import Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.memory.state import PoolRecord, StoreState, WorkerEntry

KEEP_WORKERS_SECONDS = 86400.0  # of those that have ended
KEEP_DECISIONS_SECONDS = 30 * 86400.0


def push(
    state: StoreState, pool_name: str, new_items: Sequence[model.NewItem], now: float
) -> list[str]:
    """Find out first what each item would be, so that a conflict leaves nothing behind."""
    pool = state.look(pool_name)
    new_keys: dict[str, model.NewItem] = {}  # by key, of this call
    by_id: dict[str, model.NewItem] = {}
    ids: list[str] = []
    for new in new_items:
        if new.id in state.items or new.id in by_id:
            ids.append(new.id)  # the same push again
        elif (same := _known(pool, new_keys, new)) is not None:
            ids.append(same)
        else:
            ids.append(new.id)
            by_id[new.id] = new
            if new.key is not None:
                new_keys[new.key] = new
    pool = state.pool(pool_name)
    pool.has_tenants = pool.has_tenants or any(new.tenant is not None for new in new_items)
    for new in by_id.values():
        _store(state, pool, new, now)
    return ids


def _known(pool: PoolRecord, new_keys: dict[str, model.NewItem], new: model.NewItem) -> str | None:
    """The id of the item that has this key already."""
    if new.key is None:
        return None
    item = pool.keys.get(new.key) or new_keys.get(new.key)
    if item is None:
        return None
    if item.task != new.task or not claims.is_same_json(item.data, new.data):
        raise KeyConflict(
            f"pool {pool.name!r} has an item with the key {new.key!r} and another payload or task: "
            f"use another key, or push the same payload for the same task"
        )
    return item.id


def _store(state: StoreState, pool: PoolRecord, new: model.NewItem, now: float) -> None:
    state.arrivals += 1
    item = Item(new, pool=pool.name, number=state.arrivals, now=now)
    state.items[item.id] = pool.items[item.id] = item
    if item.key is not None:
        pool.keys[item.key] = item
    pool.place(item, model.BACKLOG if new.backlog else model.PENDING, now, delay=new.delay)
    pool.ledger.count(now, histogram.ARRIVE)


def exchange(
    state: StoreState,
    pool_name: str,
    worker_ref: WorkerRef | None,
    now: float,
    *,
    settlements: Sequence[model.Settlement],
    start: ClaimRef | None,
    claim: int,
    announced: bool,
) -> model.Exchange:
    worker = _claimant(state, worker_ref) if claim else None
    to_start = None if start is None else state.item(start.item_id)
    for settlement in settlements:
        state.item(settlement.item_id)  # an unknown id is found before anything is done
    if claim:
        state.touch(now)
    settled = tuple(claims.settle(state, settlement, now) for settlement in settlements)
    started = to_start is None or claims.start(to_start, start.token if start else None, now)
    items: list[Item] = []
    if worker is not None and worker_ref is not None and may_claim(worker, worker_ref):
        if worker.renewals or worker.lease_until - now < worker.lease_seconds / 2:
            worker.renew_lease(now)
        pool = state.look(pool_name)
        if not pool.is_paused(now):
            items = claims.begin(pool, worker, claim, now, announced=announced)
    handed_out = tuple(claims.as_handed_out(item) for item in items)
    version = state.look(pool_name).version if claim else None
    return model.Exchange(settled=settled, started=started, items=handed_out, version=version)


def _claimant(state: StoreState, ref: WorkerRef | None) -> WorkerEntry:
    if ref is None:
        raise UnknownWorker("only a worker can claim: say which")
    return state.worker(ref.worker_id)


def may_claim(worker: WorkerEntry, ref: WorkerRef) -> bool:
    return worker.status == model.ACTIVE and worker.is_current(ref.incarnation)


def save(
    item: Item,
    token: str | None,
    *,
    checkpoint: str | None,
    progress: float | None,
    note: str | None,
) -> bool:
    if not item.is_held_with(token):
        return False
    if checkpoint is not None:
        item.checkpoint = checkpoint
    if progress is not None:
        item.progress = progress
    if note is not None:
        item.progress_note = note
    return True


def release(
    state: StoreState, pool: str, worker_id: str, started: Sequence[str] | None, now: float
) -> int:
    worker = state.workers.get(worker_id)
    if worker is None:
        return 0  # forgotten, or never known: it holds nothing
    return claims.release_all(state, worker, now, reason=None, pool=pool, started=started)[0]


def cancel(state: StoreState, pool: str, item_ids: Sequence[str], now: float) -> int:
    changed = 0
    for item in _of_pool(state, pool, item_ids):
        if item.status not in model.FINISHED:
            claims.drop(state, item)
            item.claimed_by = None
            item.claimed_at = None
            item.finished_at = now
            state.pools[pool].place(item, model.CANCELLED, now)
            changed += 1
    return changed


def requeue(state: StoreState, pool: str, item_ids: Sequence[str], now: float) -> int:
    changed = 0
    for item in _of_pool(state, pool, item_ids):
        if item.status in (model.POISONED, model.CANCELLED, model.BACKLOG):
            _make_fresh(item)
            state.pools[pool].place(item, model.PENDING, now)
            changed += 1
    return changed


def _make_fresh(item: Item) -> None:
    """As it was pushed, but for the epoch (it only grows) and the error (kept for reading)."""
    item.attempts = 0
    item.given_back = 0
    item.transients = 0
    item.suspect = False
    item.checkpoint = None
    item.progress = None
    item.progress_note = None
    item.result = None
    item.claimed_by = None
    item.claimed_at = None
    item.finished_at = None


def _of_pool(state: StoreState, pool: str, item_ids: Iterable[str]) -> list[Item]:
    items = [state.item(item_id) for item_id in item_ids]  # all known, or nothing is changed
    return [item for item in items if item.pool == pool]


def listed(
    state: StoreState, pool: str, status: str | None, limit: int, after: str | None
) -> list[model.WorkItem]:
    last = 0 if after is None else state.item(after).number
    items: list[model.WorkItem] = []
    for item in state.look(pool).items.values():
        if item.number > last and (status is None or item.status == status):
            items.append(item.as_record())
            if len(items) == limit:
                break
    return items


def found(
    state: StoreState,
    pool: str,
    criteria: model.ItemFilter,
    limit: int,
    after: str | None,
    now: float,
) -> model.Found:
    last = None if after is None else state.item(after).number
    items = list(state.look(pool).items.values())
    if criteria.newest:
        items.reverse()
    if last is not None:
        items = [i for i in items if (i.number < last if criteria.newest else i.number > last)]
    looked_at = [item.as_record() for item in items[: item_filter.WINDOW]]
    rows = [(item, item.id, item_filter.fits(item, criteria, now)) for item in looked_at]
    chosen, following = item_filter.chosen(rows, limit)
    return model.Found(items=tuple(item for item, _ in chosen), after=following)


def configure(state: StoreState, name: str, settings: str, version: int | None) -> bool:
    if version is not None and version != state.look(name).version:
        return False
    pool = state.pool(name)
    pool.settings = payload.settings_from(settings)
    pool.version += 1
    return True


def pool_state(state: StoreState, name: str, now: float) -> model.PoolState:
    pool = state.look(name)
    paused = pool.is_paused(now)
    return model.PoolState(
        name=name,
        settings=pool.settings,
        version=pool.version,
        paused=paused,
        paused_seconds=pool.paused_seconds(now),
        pause_reason=pool.pause_reason if paused else None,
    )


def pause(
    state: StoreState, name: str, seconds: float | None, reason: str | None, now: float
) -> None:
    pool = state.pool(name)
    pool.paused_until = math.inf if seconds is None else now + seconds
    pool.pause_reason = reason


def hold_off(state: StoreState, name: str, seconds: float, reason: str | None, now: float) -> None:
    if now + seconds > state.pool(name).paused_until:
        pause(state, name, seconds, reason, now)


def unpark(state: StoreState, worker: WorkerEntry, tasks: Sequence[str], now: float) -> None:
    """Make the items ready that waited for a worker of their pool that knows their task."""
    pool = state.look(worker.pool_id or "")
    for item in [item for item in pool.parked.values() if item.task in tasks]:
        pool.place(item, model.PENDING, min(item.ready_at, now))


def purge(state: StoreState, name: str, limit: int, now: float) -> int:
    pool = state.look(name)
    pool.ledger.tidy(now)
    _forget_history(state, name, now)
    old = [item for item in pool.items.values() if _is_past_retention(pool, item, now)][:limit]
    for item in old:
        pool.remove(item)
        del state.items[item.id]
    return len(old)


def delete_pool(state: StoreState, name: str, limit: int) -> bool | None:
    pool = state.look(name)
    workers = [worker for worker in state.workers.values() if worker.pool_id == name]
    if any(item.status not in model.FINISHED for item in pool.items.values()):
        return None
    if any(worker.status in model.LIVE for worker in workers):
        return None
    for item in list(pool.items.values())[:limit]:
        pool.remove(item)
        del state.items[item.id]
    if pool.items:
        return False
    for worker in workers:
        del state.workers[worker.worker_id]
    for place in [place for place in state.scale_sets if place[0] == name]:
        del state.scale_sets[place]
    state.pools.pop(name, None)
    return True


def _is_past_retention(pool: PoolRecord, item: Item, now: float) -> bool:
    keep = {
        model.DONE: pool.settings.keep_done_seconds,
        model.POISONED: pool.settings.keep_poisoned_seconds,
        model.CANCELLED: pool.settings.keep_cancelled_seconds,
    }.get(item.status)
    return keep is not None and item.finished_at is not None and item.finished_at + keep < now


def _forget_history(state: StoreState, pool: str, now: float) -> None:
    for worker in list(state.workers.values()):
        old = worker.ended_at is not None and worker.ended_at < now - KEEP_WORKERS_SECONDS
        if old and worker.pool_id in (pool, None):
            del state.workers[worker.worker_id]
    for (name, _), scale_set in state.scale_sets.items():
        if name == pool:
            oldest = now - KEEP_DECISIONS_SECONDS
            scale_set.decisions = [d for d in scale_set.decisions if d.at >= oldest]
