"""The checker: one scaling pass. Reap, observe, decide, record, launch; then it is over.

Any process may run it, and any number of them at the same time (see decide.py).
"""

from __future__ import annotations

from sprat.core import model
from sprat.core.errors import LaunchFailed, SpratError
from sprat.core.record import Record
from sprat.fleet.decide import Decided, by_policy, decide_and_record
from sprat.fleet.launcher import open_launcher
from sprat.scaling.launch_backoff import room_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.fleet.launcher import Launcher
    from sprat.store.store import Store


class Checked(Record):
    """What a pass found and did."""

    pool: str
    queue_depth: int
    active_workers: int
    spawned: int
    spawned_ids: tuple[str, ...]
    reason: str
    drained: tuple[str, ...] = ()
    reaped: tuple[str, ...] = ()
    released: int = 0


def check(
    store: Store,
    pool: str,
    *,
    max_workers: int | None = None,
    min_workers: int | None = None,
    launcher: Launcher | None = None,
    dry_run: bool = False,
    settings: model.PoolSettings | None = None,
    group: str | None = None,
    takes_any: bool = False,
) -> Checked:
    """Run one pass and start the workers that it decided on. A dry run changes nothing. With a
    group, only the work and the workers of that group count, and new workers belong to it; a group
    that `takes_any` counts the work without a group too."""
    settings = settings or store.pool(pool).state().settings
    settings = limited(settings, max_workers, min_workers)
    if dry_run:
        snapshot, decision = by_policy(store, pool, settings, group, takes_any=takes_any)
        wanted = Decided(snapshot=snapshot, decision=decision, drained=decision.drain)
        return _checked(wanted, decision.launch)
    tend(store, pool, settings, launcher, group)
    done = decide(store, pool, settings, group, takes_any=takes_any)
    if done.spawned:
        launch(store, pool, settings, done.spawned_ids, launcher)
    return done


def limited(
    settings: model.PoolSettings, max_workers: int | None = None, min_workers: int | None = None
) -> model.PoolSettings:
    """The settings with other limits, where they are given."""
    high = settings.max_workers if max_workers is None else max_workers
    low = settings.min_workers if min_workers is None else min_workers
    return settings.replace(max_workers=high, min_workers=min(low, high))


def tend(
    store: Store,
    pool: str,
    settings: model.PoolSettings,
    launcher: Launcher | None = None,
    group: str | None = None,
) -> None:
    """Ask the launcher what it knows of the pool's workers (those of another group may be in
    another place): a worker that is gone, or will never come, frees its slot and items now instead
    of when a deadline has passed."""
    if launcher is None and settings.launcher == "process":
        return  # a fork server sees its workers end
    alive = store.workers.list(status=model.LIVE, pool_id=pool, capability=group)
    try:
        starter = launcher or open_launcher(settings.launcher)
        gone = starter.tend(store.url, pool, settings, alive)
    except SpratError as error:  # the pass goes on; deadlines and leases say the same, later
        import logging

        logging.getLogger("sprat").warning("cannot look after the workers of %s: %s", pool, error)
        return
    never_came: dict[str, list[str]] = {}
    for worker in alive:
        why = gone.get(worker.worker_id)
        if why is None:
            continue
        if worker.status == model.STARTING:
            never_came.setdefault(why, []).append(worker.worker_id)
        else:
            store.workers.update_status(worker, model.LOST, reason=why)
    for why, worker_ids in never_came.items():
        give_up(store, worker_ids, why)


def decide(
    store: Store,
    pool: str,
    settings: model.PoolSettings,
    group: str | None = None,
    *,
    takes_any: bool = False,
) -> Checked:
    """A pass without its last step: the reservations are made, and the caller starts them."""
    store.backend.begin_check(pool)
    decided = decide_and_record(store, pool, settings, group=group, takes_any=takes_any)
    if decided.is_hold and room_left(decided.snapshot) == 0:
        # the next look is due soon: pushes need not ask for one
        store.backend.request_check(pool, settings.max_workers)
    return _checked(decided, len(decided.launched))


def launch(
    store: Store,
    pool: str,
    settings: model.PoolSettings,
    worker_ids: tuple[str, ...],
    launcher: Launcher | None = None,
) -> None:
    """Start workers for reservations; one that cannot be started frees its slot at once."""
    try:
        starter = launcher or open_launcher(settings.launcher)
        starter.launch(store.url, pool, settings, worker_ids)
    except LaunchFailed as error:
        give_up(store, error.worker_ids, f"not launched: {error}")
        if len(error.worker_ids) == len(worker_ids):
            raise
    except Exception as error:
        give_up(store, worker_ids, f"not launched: {error}")
        raise


def give_up(store: Store, worker_ids: Sequence[str], why: str) -> None:
    """Free the slots of workers that cannot be started. However many they are, one cause is one
    failure: the first is lost, which slows the next launches down, the others are called off."""
    for place, worker_id in enumerate(worker_ids):
        status = model.TERMINATED if place else model.LOST
        store.workers.update_status(worker_id, status, reason=why)


def _checked(decided: Decided, spawned: int) -> Checked:
    snapshot, reaped = decided.snapshot, decided.reaped
    return Checked(
        pool=snapshot.pool,
        queue_depth=snapshot.counts.ready,
        active_workers=snapshot.active,
        spawned=spawned,
        spawned_ids=decided.launched,
        reason=decided.reason,
        drained=decided.drained,
        reaped=reaped.workers,
        released=reaped.released,
    )
