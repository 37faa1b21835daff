"""Reservations that a machine asks for by number, instead of the pool's policy."""

from __future__ import annotations

from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.fleet.decide import Decided, decide_and_record
from sprat.scaling import drain_order, launch_backoff
from sprat.store.store import Store


def reserve(
    store: Store,
    pool: str,
    settings: PoolSettings,
    asked: int,
    *,
    most: int | None,
    who: str,
    policy: str,
) -> Decided:
    """Reserve as many workers as a machine asks for, within the maximum of the pool and `most`, and
    at the pace that is left after launches that failed. `who` asks is part of the reason."""
    limit = settings.max_workers if most is None else min(most, settings.max_workers)

    def rule(snapshot: Snapshot) -> Decision:
        current = len(drain_order.fleet(snapshot.workers))
        launch = max(0, min(asked, limit - current))
        reason = f"{who} asked for {asked}: {current} workers, at most {limit}"
        launch, reason = launch_backoff.braked(snapshot, launch, reason)
        return Decision(
            pool=pool,
            policy=policy,
            direction="up" if launch else "hold",
            current=current,
            desired=current + launch,
            reason=reason,
            inputs={"asked": asked, "ready": snapshot.counts.ready},
            launch=launch,
            max_workers=limit,
            start_deadline_seconds=settings.reservation_seconds,
        )

    return decide_and_record(store, pool, settings, rule)
