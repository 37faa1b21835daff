"""Compares what a worker reports when it registers again with what the store holds.

The worker may have finished operations while the server could not be reached, and may still be
working on one. Finished ones come first; those that are unknown or over are skipped. The current
one comes back as one to stop if it is over (done, poisoned, cancelled) or no longer this worker's.
"""

from __future__ import annotations

from collections.abc import Iterable

from sprat.core import model
from sprat.core.errors import UnknownItem
from sprat.server import outcomes
from sprat.store.backend import Backend


def settle_finished(
    backend: Backend, worker_id: str, finished: Iterable[model.Settlement], *, is_proven: bool
) -> list[str]:
    """Settle what this worker still holds; the ids that were. The claim's token proves it, or the
    worker's secret."""
    settled = []
    for ended in finished:
        item = _held(backend, ended.item_id, worker_id)
        if item is None or not (is_proven or ended.token == item.token):
            continue
        if outcomes.settle(backend, item, ended.replace(token=item.token)):
            settled.append(item.id)
    return settled


def to_stop(backend: Backend, worker_id: str, operation_id: str | None) -> list[str]:
    """The operation, unless this worker holds it. An unknown one goes on: it may be none of the
    store's, for operations are dispatched to endpoints without a job too."""
    if operation_id is None or _find(backend, operation_id) is None:
        return []
    return [] if _held(backend, operation_id, worker_id) else [operation_id]


def _find(backend: Backend, item_id: str) -> model.WorkItem | None:
    try:
        return backend.item(item_id)
    except UnknownItem:
        return None


def _held(backend: Backend, item_id: str, worker_id: str) -> model.WorkItem | None:
    item = _find(backend, item_id)
    is_held = item is not None and item.status == model.CLAIMED and item.claimed_by == worker_id
    return item if is_held else None
