"""The scaler: sets the fleet of a pool to a number by hand, once, and does not wait."""

from __future__ import annotations

from sprat.core import payload
from sprat.core.errors import StoreUnavailable
from sprat.core.model import Decision
from sprat.core.record import Record
from sprat.fleet import checker
from sprat.fleet.decide import Decided, decide_and_record
from sprat.scaling import drain_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.model import Snapshot
    from sprat.fleet.launcher import Launcher
    from sprat.store.store import Store

NAME = "by hand"


class Scaled(Record):
    """What was there and what was done about it. A dry run says what would be done."""

    pool: str
    target: int
    current: int
    launched: int
    terminating: int
    launched_ids: tuple[str, ...] = ()
    terminating_ids: tuple[str, ...] = ()


def scale(
    store: Store,
    pool: str,
    target: int,
    *,
    launcher: Launcher | None = None,
    dry_run: bool = False,
) -> Scaled:
    """Launch exactly the deficit, or drain the surplus: idle workers first, and no running job is
    interrupted. At the target already: nothing is written.

    A person who asks for a number gets it: neither the pool's maximum nor the backoff after failed
    launches applies, and dead workers, which do not count as current, are left to the reaper."""
    payload.whole(target, "the target", 0, 100_000)
    settings = store.pool(pool).state().settings

    def rule(snapshot: Snapshot) -> Decision:
        return decide(snapshot, target, settings.reservation_seconds)

    if dry_run:
        snapshot = store.pool(pool).observe()
        decision = rule(snapshot)
        return _scaled(Decided(snapshot=snapshot, decision=decision, drained=decision.drain))
    decided = decide_and_record(store, pool, settings, rule, reaps=False)
    if decided.is_beaten:
        raise StoreUnavailable(f"others keep deciding about pool {pool}: try again")
    if decided.launched:
        checker.launch(store, pool, settings, decided.launched, launcher)
    return _scaled(decided)


def decide(seen: Snapshot, target: int, start_deadline_seconds: float) -> Decision:
    """Pure: what brings the fleet that was seen to the target."""
    current = len(drain_order.fleet(seen.workers))
    surplus = drain_order.choose(seen.workers, current - target, spare_busy=False)
    deficit = max(0, target - current)
    return Decision(
        pool=seen.pool,
        group=seen.group,
        policy=NAME,
        direction="up" if deficit else "down" if surplus else "hold",
        current=current,
        desired=target,
        reason=f"{current} workers, {target} wanted by hand",
        launch=deficit,
        drain=surplus,
        max_workers=target,
        start_deadline_seconds=start_deadline_seconds,
    )


def _scaled(decided: Decided) -> Scaled:
    decision = decided.decision
    return Scaled(
        pool=decision.pool,
        target=decision.desired,
        current=decision.current,
        launched=decision.launch,
        terminating=len(decision.drain),
        launched_ids=decided.launched,
        terminating_ids=decided.drained,
    )
