"""The reaper: one pass over stale workers, and what is past its retention."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat import model
    from sprat.store import Store


def reap(
    store: Store, pool: str | None = None, *, threshold_seconds: float | None = None
) -> model.Reaped:
    """Mark the dead as lost, free their items, and forget what has been kept long enough."""
    reaped = store.workers.reap(pool, threshold_seconds=threshold_seconds)
    for name in store.pools() if pool is None else [pool]:
        store.pool(name).purge()
    return reaped
