"""Whose turn it is: of the workers that are available, the one that was chosen longest ago.

One document a worker type says when each was last chosen; it changes by compare-and-set, so two
servers that choose at the same time choose two workers.
"""

from __future__ import annotations

from sprat.core import jsontext
from sprat.server import endpoint_workers, monitor
from sprat.store.backend import Backend

KIND = "turns"
TRIES = 20  # lost races in a row; then whoever was seen is good enough

Choices = dict[str, int]


def choose(backend: Backend, worker_type: str, without: frozenset[str] = frozenset()) -> str | None:
    """The next worker's id, or None when nobody is available. Blocks."""
    ids = [one for one in available(backend, worker_type) if one not in without]
    if not ids:
        return None
    for _ in range(TRIES):
        document = backend.document(KIND, worker_type)
        choices: Choices = {} if document is None else jsontext.loads(document.body)
        chosen = min(ids, key=lambda worker_id: (choices.get(worker_id, 0), worker_id))
        after = {**choices, chosen: max(choices.values(), default=0) + 1}
        kept = {one: after[one] for one in sorted(after, key=after.__getitem__)[-10_000:]}
        version = 0 if document is None else document.version
        if backend.put(KIND, worker_type, jsontext.dumps(kept), version, None):
            break
    return chosen


def available(backend: Backend, worker_type: str) -> list[str]:
    """Workers of this type that have an endpoint, are well and have nothing to do."""
    return [
        worker.worker_id
        for worker in monitor.serving(backend)
        if worker.pool_id == worker_type
        and endpoint_workers.status(worker, endpoint_workers.health(backend, worker.worker_id))
        == endpoint_workers.AVAILABLE
    ]
