"""Deleting a pool with all that belongs to it: see the verb `delete_pool` in backend.py."""

from __future__ import annotations

from sprat.core import model
from sprat.core.errors import PoolInUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.backend import Backend

ITEMS = 10_000  # finished items per step: other processes get their turn between two steps


def delete(backend: Backend, name: str) -> bool:
    """Delete a pool that has no unfinished jobs and no live workers; False: there is none. A push
    at the same time keeps the pool, or makes it anew: the pushed job is never deleted."""
    exists = name in backend.pools()
    backend.reap(name, None)  # dead workers are no reason to keep it
    while not (is_deleted := backend.delete_pool(name, ITEMS)):
        if is_deleted is None:
            raise PoolInUse(_why(backend, name))
    _forget_notes(backend, name)
    return exists


def _forget_notes(backend: Backend, name: str) -> None:
    """What policies noted for their next decisions, about the pool and each group of it."""
    of_pool = f"{name}/"
    backend.put(model.POLICY_NOTES, of_pool, None, None, None)
    while notes := backend.documents(model.POLICY_NOTES, 100, of_pool):
        names = [note.name for note in notes if note.name.startswith(of_pool)]
        for note in names:
            backend.put(model.POLICY_NOTES, note, None, None, None)
        if len(names) < len(notes):
            return


def _why(backend: Backend, name: str) -> str:
    counts = backend.counts(name)
    workers = backend.workers(model.WorkerFilter(status=model.LIVE, pool_id=name))
    drain = f"`sprat workers drain --pool {name}`"
    found = [
        (counts.pending, "waiting job", f"`sprat jobs cancel --all-pending {name}`"),
        (counts.backlog, "backlog job", f"`sprat jobs cancel --pool {name} --status backlog`"),
        (counts.claimed, "running job", drain),
        (len(workers), "live worker", drain),
    ]
    used = [f"{n:,} {word}{'s' * (n != 1)}" for n, word, _ in found if n]
    commands = dict.fromkeys(command for n, _, command in found if n)
    if not used:
        return f"pool {name!r} was used a moment ago: try again"
    return f"pool {name!r} has {' and '.join(used)}: run {' and '.join(commands)} first"
