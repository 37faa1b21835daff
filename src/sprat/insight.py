"""What a policy gets to see: the snapshot, and with it the history and the notes that it asks for.

A policy is pure, but its decisions may have notes for the next one (`memory`): an average that
fades, the workers that it waits for. They are kept as a document of the store. Of two passes at the
same time the later one's notes stay; they hold nothing that the next pass could not learn again.
"""

from __future__ import annotations

from sprat import jsontext
from sprat.scaling import policies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.model import Decision, PoolSettings, Snapshot
    from sprat.store import Store

KIND = "scaling"


def observe(store: Store, pool: str, settings: PoolSettings, group: str | None = None) -> Snapshot:
    """A snapshot for the policy that the settings name."""
    policy = policies.find(settings.policy)
    seen = store.pool(pool).observe(group)
    if getattr(policy, "REMEMBERS", False):
        kept = store.backend.document(KIND, _name(seen))
        if kept is not None:
            seen = seen.replace(memory=jsontext.loads(kept.body))
    if not policies.wants_history(seen, settings):
        return seen
    return seen.replace(history=store.pool(pool).history(policy.HISTORY_SECONDS))


def remember(store: Store, seen: Snapshot, decision: Decision) -> None:
    """Keep the notes, if there is anything new in them."""
    if decision.memory != seen.memory:
        store.backend.put(KIND, _name(seen), jsontext.dumps(dict(decision.memory)), None, None)


def _name(seen: Snapshot) -> str:
    return f"{seen.pool}/{seen.group or ''}"
