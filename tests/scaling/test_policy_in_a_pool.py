"""A pool's own policy decides its scaling passes, on every store."""

from __future__ import annotations

from collections.abc import Callable

from sprat.core.model import ACTIVE, TERMINATING, WorkerRecord
from sprat.fleet import checker, scaler
from sprat.fleet.launcher import Launcher
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Enrol = Callable[..., WorkerRecord]


class NoLauncher(Launcher):
    """Launches nobody: the reservations are what is tested."""

    def launch(self, *_: object, **__: object) -> None:
        pass


def check(store: Store, **options: object) -> checker.Checked:
    return checker.check(store, "papers", launcher=NoLauncher(), **options)  # type: ignore[arg-type]


def statuses(store: Store) -> dict[str, str]:
    return {w.worker_id: w.status for w in store.workers.list(pool_id="papers")}


def test_the_default_policy_drains_nobody(store: Store, pool: WorkPool, enrol: Enrol) -> None:
    for n in range(3):
        enrol(f"w{n}", pool_id="papers")
    assert check(store).drained == ()
    assert pool.decisions() == []


def test_chosen_policy_sizes_the_fleet(store: Store, pool: WorkPool) -> None:
    pool.configure(policy="step", policy_options={"steps": {"0": 0, "1-5": 2, "6+": 4}})
    pool.push_many(range(7))
    checked = check(store)
    assert checked.spawned == len(checked.spawned_ids) == 4
    (kept,) = pool.decisions()
    assert (kept.policy, kept.direction, kept.current, kept.desired) == ("step", "up", 0, 4)
    assert check(store).spawned == 0


def test_surplus_is_drained_by_name_and_recorded_and_the_busy_stay(
    store: Store, pool: WorkPool, enrol: Enrol
) -> None:
    """Behaviours 3.4 and 3.11: idle first, nobody stopped in the middle of a job."""
    pool.configure(policy="pending-per-worker")
    workers = [enrol(f"w{n}", pool_id="papers") for n in range(3)]
    pool.push("job")
    item = pool.claim(workers[0])
    assert set(check(store, dry_run=True).drained) == {"w1", "w2"}
    assert set(statuses(store).values()) == {ACTIVE}
    checked = check(store)
    assert set(checked.drained) == {"w1", "w2"}
    assert statuses(store) == {"w0": ACTIVE, "w1": TERMINATING, "w2": TERMINATING}
    (kept,) = pool.decisions()
    assert (kept.direction, kept.drained) == ("down", checked.drained)
    assert kept.inputs["target_pending_per_worker"] == 1.0
    assert item is not None
    assert pool.complete(item, "done")


def test_next_change_down_waits_for_its_delay(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Callable[[float], None]
) -> None:
    """Behaviour 3.5."""
    pool.configure(policy="pending-per-worker", policy_options={"scale_down_delay_seconds": 100})
    enrol("first", pool_id="papers")
    assert check(store).drained == ("first",)
    enrol("second", pool_id="papers")
    advance(90)
    waits = check(store)
    assert waits.drained == ()
    assert "down in" in waits.reason
    advance(20)
    assert check(store).drained == ("second",)


def test_policy_and_options_survive_the_store(
    pool: WorkPool, open_again: Callable[[], Store]
) -> None:
    options = {"steps": {"0-5": 1, "6+": 3}, "scale_down_delay_seconds": 5}
    pool.configure(policy="step", policy_options=options)
    again = open_again().pool("papers").state().settings
    assert (again.policy, again.policy_options) == ("step", options)


def test_scaling_by_hand_chooses_the_same_victims(
    store: Store, pool: WorkPool, enrol: Enrol
) -> None:
    """Behaviour 0.3."""
    workers = [enrol(f"w{n}", pool_id="papers") for n in range(3)]
    pool.push("job")
    pool.claim(workers[2])
    assert set(scaler.scale(store, "papers", 1, dry_run=True).terminating_ids) == {"w0", "w1"}
