"""What a policy gets to see: the snapshot, and with it the history and the notes that it asks for.

A policy is pure, but its decisions may have notes for the next one (`memory`): an average that
fades, the workers that it waits for. They are kept as a document of the store. Of two passes at the
same time the later one's notes stay; they hold nothing that the next pass could not learn again.
"""

from __future__ import annotations

from sprat.core import jsontext, machine_load
from sprat.core.model import NO_GROUP, POLICY_NOTES
from sprat.scaling import policies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.model import Decision, PoolSettings, Snapshot
    from sprat.store.store import Store

KIND = POLICY_NOTES


def observe(
    store: Store,
    pool: str,
    settings: PoolSettings,
    group: str | None = None,
    *,
    takes_any: bool = False,
) -> Snapshot:
    """A snapshot for the policy that the settings name. A group that `takes_any` also counts the
    work that needs no group."""
    policy = policies.find(settings.policy)
    seen = store.pool(pool).observe(group)
    if takes_any and group is not None:
        seen = _together(seen, store.pool(pool).observe(NO_GROUP))
    if getattr(policy, "REMEMBERS", False):
        kept = store.backend.document(KIND, _name(seen))
        if kept is not None:
            seen = seen.replace(memory=jsontext.loads(kept.body))
    seen = on_this_machine(seen, settings)
    if not policies.wants_history(seen, settings):
        return seen
    return seen.replace(history=store.pool(pool).history(policy.HISTORY_SECONDS))


def on_this_machine(seen: Snapshot, settings: PoolSettings) -> Snapshot:
    """With what the machine can bear, if workers would be launched on this one."""
    if settings.launcher != "process":
        return seen
    return seen.replace(cores=machine_load.cores(), saturated=machine_load.saturation())


def remember(store: Store, seen: Snapshot, decision: Decision) -> None:
    """Keep the notes, if there is anything new in them."""
    if decision.memory != seen.memory:
        store.backend.put(KIND, _name(seen), jsontext.dumps(dict(decision.memory)), None, None)


def _together(seen: Snapshot, free: Snapshot) -> Snapshot:
    """What a group sees, with the work that needs no group. Others run some of that: what runs
    here is what our own workers hold."""
    ours, theirs = seen.counts, free.counts
    waits = (seen.oldest_ready_seconds, free.oldest_ready_seconds)
    dues = (seen.next_due_seconds, free.next_due_seconds)
    return seen.replace(
        counts=ours.replace(
            pending=ours.pending + theirs.pending,
            delayed=ours.delayed + theirs.delayed,
            claimed=sum(worker.claims for worker in seen.workers),
        ),
        held=seen.held + free.held,
        oldest_ready_seconds=max((w for w in waits if w is not None), default=None),
        next_due_seconds=min((d for d in dues if d is not None), default=None),
    )


def _name(seen: Snapshot) -> str:
    return f"{seen.pool}/{seen.group or ''}"
