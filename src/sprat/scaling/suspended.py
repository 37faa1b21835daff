"""Workers that are there but take no work for now: they lower the useful maximum. Pure.

Whoever does not answer its health checks, or says of itself that it is suspended (a key without
quota, say), may come back and keeps its place. But it is no capacity: a policy sees the fleet
without it, and as many places fewer. Above the maximum the suspended leave first.
"""

from __future__ import annotations

from sprat.scaling import drain_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.core.model import Decision, PoolSettings, Snapshot


def without(seen: Snapshot) -> Snapshot:
    """What there would be if they were not."""
    away = {worker.worker_id for worker in seen.suspended}
    return seen.replace(workers=tuple(w for w in seen.workers if w.worker_id not in away))


def decide(policy: Any, seen: Snapshot, settings: PoolSettings) -> Decision:
    """What the policy makes of the others, in the room that these leave."""
    high, away = settings.max_workers, seen.suspended
    excess = len(drain_order.fleet(seen.workers)) - high
    leaving = drain_order.choose(away, excess, spare_busy=True)
    staying = len(away) - len(leaving)
    room = max(0, high - staying)
    narrowed = settings.replace(max_workers=room, min_workers=min(settings.min_workers, room))
    made: Decision = policy.decide(without(seen), narrowed)
    return made.replace(
        direction="down" if leaving else made.direction,
        current=made.current + len(away),
        desired=made.desired + staying,
        reason=f"{made.reason}; {len(away)} suspended, which leaves room for {room}",
        inputs={**made.inputs, "suspended": len(away), "max_workers": high},
        drain=(*leaving, *made.drain),
        max_workers=high,
    )
