"""The checker: one scaling pass. Reap, observe, decide, record, launch; then it is over.

Anybody may run it, any number at the same time: recording is a compare-and-set, so of all who
decide on the same observation one wins, and the others look again.
"""

from __future__ import annotations

from sprat.core import model
from sprat.core.errors import LaunchFailed, SpratError
from sprat.core.record import Record
from sprat.fleet import policy_input
from sprat.fleet.launcher import open_launcher
from sprat.scaling import policies
from sprat.scaling.launch_backoff import room_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.fleet.launcher import Launcher
    from sprat.store.store import Store

TRIES = 10  # lost races in a row before a pass leaves it to the winners


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
    group, only the work and the workers of that group count, and who is launched belongs to it;
    a group that `takes_any` counts the work without a group too."""
    settings = settings or store.pool(pool).state().settings
    high = settings.max_workers if max_workers is None else max_workers
    low = settings.min_workers if min_workers is None else min_workers
    settings = settings.replace(max_workers=high, min_workers=min(low, high))
    if dry_run:
        seen = policy_input.observe(store, pool, settings, group, takes_any=takes_any)
        return _checked(seen, policies.decide(seen, settings), (), model.Reaped())
    tend(store, pool, settings, launcher, group)
    done = decide(store, pool, settings, group, takes_any=takes_any)
    if done.spawned:
        launch(store, pool, settings, done.spawned_ids, launcher)
    return done


def tend(
    store: Store,
    pool: str,
    settings: model.PoolSettings,
    launcher: Launcher | None = None,
    group: str | None = None,
) -> None:
    """Ask the launcher what it knows of the pool's workers (those of another group may be in
    another place): who is gone, or will never come, frees slot and items now instead of when a
    deadline has passed."""
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
    """A pass without its last step: the reservations are made, somebody has to start them."""
    store.backend.begin_check(pool)
    reaped = store.workers.reap(pool)
    if reaped.workers:
        store.happened(model.WORKER_LOST, pool, settings)
        store.happened(model.POOL_EMPTY, pool, settings)  # if that was the last attempt
    for _ in range(TRIES):
        seen = policy_input.observe(store, pool, settings, group, takes_any=takes_any)
        decision = policies.decide(seen, settings)
        policy_input.remember(store, seen, decision)
        if not decision.launch and not decision.drain:
            if room_left(seen) == 0:  # the next look is due soon: pushes need not ask for one
                store.backend.request_check(pool, settings.max_workers)
            break
        recorded = store.pool(pool).record(decision, version=seen.version)
        if recorded is not None:
            done = decision.replace(drain=recorded.drained)
            return _checked(seen, done, recorded.launched, reaped)
    return _checked(seen, decision.replace(launch=0, drain=()), (), reaped)


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


def _checked(
    seen: model.Snapshot,
    decision: model.Decision,
    launched: tuple[str, ...],
    reaped: model.Reaped,
) -> Checked:
    return Checked(
        pool=seen.pool,
        queue_depth=seen.counts.ready,
        active_workers=seen.active,
        spawned=decision.launch,
        spawned_ids=launched,
        reason=decision.reason,
        drained=decision.drain,
        reaped=reaped.workers,
        released=reaped.released,
    )
