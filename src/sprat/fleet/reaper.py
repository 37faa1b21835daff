"""The reaper: one pass over stale workers, and what is past its retention."""

from __future__ import annotations

from sprat.core import model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.store import Store


def reap(
    store: Store, pool: str | None = None, *, threshold_seconds: float | None = None
) -> model.Reaped:
    """Mark the dead as lost, free their items, and forget what has been kept long enough."""
    reaped = store.workers.reap(pool, threshold_seconds=threshold_seconds)
    for name in store.pools() if pool is None else [pool]:
        store.pool(name).purge()
    for name in _pools_of(store, reaped.workers):
        store.lost_workers(name, store.pool(name).state().settings)
    return reaped


def _pools_of(store: Store, worker_ids: Sequence[str]) -> list[str]:
    records = [store.workers.get(worker_id) for worker_id in worker_ids]
    return list(dict.fromkeys(w.pool_id for w in records if w is not None and w.pool_id))
