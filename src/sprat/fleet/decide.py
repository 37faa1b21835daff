"""Observe, decide, record: the compare-and-set that every change of a fleet goes through.

Any number of processes may decide at the same time. A decision is recorded only if no other one
was since the snapshot that it is based on; otherwise the loser observes and decides again.
"""

from __future__ import annotations

from sprat.core import model
from sprat.core.record import Record
from sprat.fleet import policy_input
from sprat.scaling import policies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sprat.store.store import Store

    Rule = Callable[[model.Snapshot], model.Decision]

TRIES = 10  # lost races in a row before a caller leaves it to the winners
BEATEN = "other passes were faster each time"


class Decided(Record):
    """The last decision, the snapshot behind it, and what was recorded of it."""

    snapshot: model.Snapshot
    decision: model.Decision
    launched: tuple[str, ...] = ()  # ids of the reservations: the caller has to start them
    drained: tuple[str, ...] = ()
    reaped: model.Reaped = model.Reaped()
    is_beaten: bool = False  # others decided first each time: nothing was recorded

    @property
    def is_hold(self) -> bool:
        return not self.decision.launch and not self.decision.drain

    @property
    def reason(self) -> str:
        return BEATEN if self.is_beaten else self.decision.reason


def decide_and_record(
    store: Store,
    pool: str,
    settings: model.PoolSettings,
    rule: Rule | None = None,
    *,
    group: str | None = None,
    takes_any: bool = False,
    reaps: bool = True,
) -> Decided:
    """Decide by the rule, or without one by the policy of the settings, which also gets its notes
    and history. A decision to change nothing is not recorded. `reaps`: first mark the dead workers
    as lost, so that their jobs count as waiting."""
    reaped = store.workers.reap(pool) if reaps else model.Reaped()
    if reaped.workers:
        store.lost_workers(pool, settings)
    for _ in range(TRIES):
        if rule is None:
            snapshot, decision = by_policy(store, pool, settings, group, takes_any=takes_any)
            policy_input.remember(store, snapshot, decision)
        else:
            snapshot = store.pool(pool).observe(group)
            decision = rule(snapshot)
        decided = Decided(snapshot=snapshot, decision=decision, reaped=reaped)
        if decided.is_hold:
            return decided
        recorded = store.pool(pool).record(decision, version=snapshot.version)
        if recorded is not None:
            return decided.replace(launched=recorded.launched, drained=recorded.drained)
    return decided.replace(is_beaten=True)


def by_policy(
    store: Store,
    pool: str,
    settings: model.PoolSettings,
    group: str | None = None,
    *,
    takes_any: bool = False,
) -> tuple[model.Snapshot, model.Decision]:
    """What the policy of the settings sees and decides now. Nothing is written."""
    snapshot = policy_input.observe(store, pool, settings, group, takes_any=takes_any)
    return snapshot, policies.decide(snapshot, settings)
