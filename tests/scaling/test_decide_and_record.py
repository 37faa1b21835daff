"""One compare-and-set for every decision about a fleet: by a policy, by a rule, by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprat.core.errors import StoreUnavailable
from sprat.core.model import LOST, POLICY_NOTES, STARTING, Decision, Snapshot, WorkerRecord
from sprat.fleet import checker, reservation, scaler
from sprat.fleet.decide import BEATEN, decide_and_record
from sprat.fleet.launcher import Launcher
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Enrol = Callable[..., WorkerRecord]


class NoLauncher(Launcher):
    """Launches nobody: the reservations are what is tested."""

    def launch(self, *_: object, **__: object) -> None:
        pass


def up(snapshot: Snapshot) -> Decision:
    return Decision(
        pool=snapshot.pool,
        policy="test",
        direction="up",
        current=snapshot.active,
        desired=snapshot.active + 1,
        reason="one more",
        launch=1,
        max_workers=10,
    )


def meddle(store: Store, times: int) -> Callable[[Snapshot], Decision]:
    """A rule beside which another pass is faster this many times."""
    left = [times]

    def rule(snapshot: Snapshot) -> Decision:
        if left[0]:
            left[0] -= 1
            store.pool("papers").record(up(snapshot), version=snapshot.version)
        return up(snapshot)

    return rule


def test_the_loser_of_a_race_decides_again_on_what_the_winner_left(
    store: Store, pool: WorkPool
) -> None:
    settings = pool.state().settings
    decided = decide_and_record(store, "papers", settings, meddle(store, 1))
    assert decided.snapshot.starting == 1
    assert len(decided.launched) == 1
    assert len(pool.decisions()) == 2


def test_nothing_is_recorded_by_a_loser_of_every_race(store: Store, pool: WorkPool) -> None:
    decided = decide_and_record(store, "papers", pool.state().settings, meddle(store, 99))
    assert (decided.is_beaten, decided.launched, decided.reason) == (True, (), BEATEN)


def test_a_scaler_that_loses_every_race_asks_to_try_again(
    store: Store, pool: WorkPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkPool, "record", lambda *_, **__: None)
    with pytest.raises(StoreUnavailable, match="others keep deciding about pool papers: try again"):
        scaler.scale(store, "papers", 3)
    pool.push(1)
    checked = checker.decide(store, "papers", pool.state().settings)
    assert (checked.spawned, checked.spawned_ids, checked.reason) == (0, (), BEATEN)


def test_a_rule_leaves_the_notes_of_the_policy_alone(store: Store, pool: WorkPool) -> None:
    pool.push(1)
    settings = pool.state().settings
    checker.decide(store, "papers", settings)
    notes = store.backend.document(POLICY_NOTES, "papers/")
    decide_and_record(store, "papers", settings, up)
    after = store.backend.document(POLICY_NOTES, "papers/")
    assert (notes and notes.body) == (after and after.body)


def reserve(store: Store, asked: int) -> tuple[int, str]:
    settings = store.pool("papers").state().settings
    made = reservation.reserve(store, "papers", settings, asked, most=3, who="m", policy="m")
    return len(made.launched), made.reason


def test_a_machine_gets_no_more_than_the_maximum(store: Store, pool: WorkPool) -> None:
    assert reserve(store, 2) == (2, "m asked for 2: 0 workers, at most 3")
    assert reserve(store, 2) == (1, "m asked for 2: 2 workers, at most 3")
    assert reserve(store, 2) == (0, "m asked for 2: 3 workers, at most 3")


def test_the_dead_are_reaped_before_a_machine_is_answered(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Callable[[float], None]
) -> None:
    for n in range(3):
        enrol(f"w{n}", pool_id="papers", lease_seconds=10)
    assert reserve(store, 1)[0] == 0
    advance(11)
    assert reserve(store, 1)[0] == 1
    assert {worker.status for worker in store.workers.list()} == {LOST, STARTING}


def test_machines_wait_after_failed_launches_and_a_person_does_not(
    store: Store, pool: WorkPool
) -> None:
    settings = pool.state().settings
    made = reservation.reserve(store, "papers", settings, 1, most=3, who="m", policy="m")
    checker.give_up(store, made.launched, "no room")
    reason = "1 launch in a row did not come to work: the next try is in 1 s"
    assert reserve(store, 2) == (0, reason)
    scaled = scaler.scale(store, "papers", 2, launcher=NoLauncher())
    assert (scaled.launched, len(scaled.launched_ids)) == (2, 2)
