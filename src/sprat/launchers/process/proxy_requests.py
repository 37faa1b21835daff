"""The requests that a fork server sends to its store proxy, and what each does in the store.

A request is the name of a function here with its arguments; the reply is a `FleetState`.
"""

from __future__ import annotations

from sprat.core import jsontext, model
from sprat.core.record import Record
from sprat.fleet import checker, controller_lease, policy_input
from sprat.launchers.process import attendant
from sprat.launchers.process.launcher import MachineLauncher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from sprat.store.store import Store

CONTROLLER_SECONDS = 1.0  # between two looks whether a controller is alive


class FleetState(Record):
    """The reply of the store proxy."""

    settings: model.PoolSettings
    version: int
    launch: tuple[str, ...]
    wake_in: float | None  # seconds until there may be something to do, None: there is nothing
    led: int = 0  # the version of the controller's lease, where a controller leads the pool


def fleet_state(reply: Any) -> FleetState:
    settings, version, launch, wake_in, led = reply
    return FleetState(
        settings=model.PoolSettings.of(settings),
        version=version,
        launch=tuple(launch),
        wake_in=wake_in,
        led=led,
    )


def begin(store: Store, pool: str, worker_ids: Sequence[str]) -> FleetState:
    if worker_ids:
        state = store.pool(pool).state()
        return FleetState(
            settings=state.settings,
            version=state.version,
            launch=tuple(worker_ids),
            wake_in=_wake_in(store, pool, state.settings, worker_ids),
        )
    return run_pass(store, pool, [], None)


def run_pass(
    store: Store,
    pool: str,
    exits: Sequence[tuple[str, str]],
    version: int | None,
    machine: str | None = None,
    ours: Sequence[str] = (),
    called_ago: float = 0.0,
    led: int = 0,
) -> FleetState:
    """Report the exits, and run a scaling pass, unless a controller does that. If the pool's
    settings changed, this fork server has the wrong code for new workers: another one is started
    for them. One that runs a machine keeps to the maximum that it was launched with."""
    report_exits(store, pool, exits)
    lease = store.backend.document(controller_lease.KIND, controller_lease.name_of(pool, None))
    if lease is not None:
        return _leave_to_controller(store, pool, lease.version, led)
    state = store.pool(pool).state()
    checked = checker.decide(store, pool, _limited(state.settings, machine))
    launch = checked.spawned_ids
    if launch and version not in (None, state.version):
        launcher = None if machine is None else MachineLauncher(machine)
        checker.launch(store, pool, state.settings, launch, launcher)
        launch = ()
    return FleetState(
        settings=state.settings,
        version=state.version,
        launch=launch,
        wake_in=_wake_in(store, pool, state.settings, (*ours, *launch), called_ago),
    )


def _leave_to_controller(store: Store, pool: str, version: int, led: int) -> FleetState:
    """A controller that renewed its lease since the first request is alive."""
    waits = led in (0, version) and store.pool(pool).size() > 0
    return _nothing_more(store, pool, CONTROLLER_SECONDS if waits else None).replace(led=version)


def _limited(settings: model.PoolSettings, machine: str | None) -> model.PoolSettings:
    most = None if machine is None else jsontext.loads(machine)["max_workers"]
    high = settings.max_workers if most is None else min(most, settings.max_workers)
    return settings.replace(max_workers=high, min_workers=min(settings.min_workers, high))


def report_exits(store: Store, pool: str, exits: Sequence[tuple[str, str]]) -> FleetState:
    """Mark workers that did not leave in order as lost, so that their items are free at once."""
    lost = [store.workers.update_status(w, model.LOST, reason=how) for w, how in exits if how]
    state = _nothing_more(store, pool)
    if any(lost):
        store.lost_workers(pool, state.settings)
    return state


def _nothing_more(store: Store, pool: str, wake_in: float | None = None) -> FleetState:
    state = store.pool(pool).state()
    return FleetState(settings=state.settings, version=state.version, launch=(), wake_in=wake_in)


def give_up(store: Store, pool: str, worker_ids: Sequence[str], why: str) -> FleetState:
    """The launch failed; it may be worth another try later."""
    checker.give_up(store, worker_ids, why)
    settings = store.pool(pool).state().settings
    return _nothing_more(store, pool, _wake_in(store, pool, settings))


def cancel_launch(store: Store, pool: str, worker_ids: Sequence[str], why: str) -> FleetState:
    for worker_id in worker_ids:
        store.workers.update_status(worker_id, model.TERMINATED, reason=why)
    return _nothing_more(store, pool)


def _wake_in(
    store: Store,
    pool: str,
    settings: model.PoolSettings,
    ours: Sequence[str] = (),
    called_ago: float = 0.0,
) -> float | None:
    counts = store.pool(pool).counts()
    if not counts.pending and not counts.claimed:
        return None
    snapshot = policy_input.observe(store, pool, settings)
    return attendant.look_again_in(snapshot, settings, ours=ours, called_ago=called_ago)


OPERATIONS: dict[str, Callable[..., FleetState]] = {
    operation.__name__: operation
    for operation in (begin, run_pass, report_exits, give_up, cancel_launch)
}
