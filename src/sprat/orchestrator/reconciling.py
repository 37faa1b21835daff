"""What a worker says when it registers again, compared with what the store knows.

It may have finished operations while nobody was there to hear of it, and may still be working on
one. Finished ones come first. What is unknown or over is skipped; an operation that is not this
worker's any more comes back as one to stop.
"""

from __future__ import annotations

from collections.abc import Iterable

from sprat import model
from sprat.backend import Backend
from sprat.errors import UnknownItem
from sprat.orchestrator import outcomes


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
    """The operation, if it is alive and not (or no longer) this worker's."""
    if operation_id is None:
        return []
    item = _live(backend, operation_id)
    if item is None or item.claimed_by == worker_id:
        return []
    return [operation_id]


def _live(backend: Backend, item_id: str) -> model.WorkItem | None:
    try:
        item = backend.item(item_id)
    except UnknownItem:
        return None
    return None if item.status in model.FINISHED else item


def _held(backend: Backend, item_id: str, worker_id: str) -> model.WorkItem | None:
    item = _live(backend, item_id)
    return item if item is not None and item.claimed_by == worker_id else None
