"""One worker as its store knows it: registration, heartbeats, lost contact, leaving."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sprat.core import model
from sprat.core.errors import StoreUnavailable
from sprat.machines.runtime.worker import ClaimLost, Fenced, MachineWorker
from sprat.store.open_store import open_store
from sprat.store.store import Store
from sprat.worker.membership import Membership, registration
from sprat.worker.observer import WorkerObserver
from sprat.worker.worker import ENOUGH, Worker


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory://") as store:
        yield store


def member(store: Store, **about: str) -> Membership:
    return Membership(store, registration("w", "papers", 30.0), **about)


def unreachable(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(store.workers, "heartbeat", fail)


def test_a_worker_is_active_until_it_leaves(store: Store) -> None:
    me = member(store)
    assert me.register()
    assert (me.status, me.lease, me.is_told_to_leave) == (model.ACTIVE, 60.0, False)
    store.workers.update_status("w", model.TERMINATING)
    assert me.heartbeat() == ()
    assert me.is_told_to_leave
    me.leave(model.TERMINATED, "done")
    assert store.workers.list()[0].reason == "done"


def test_a_place_that_was_given_up_is_not_taken(store: Store) -> None:
    store.pool("papers").push(1)
    me = Membership(store, registration("w", "papers", 30.0))
    me.register()
    me.leave(model.LOST, "given up")
    late = Membership(store, registration("w", "papers", 30.0, reserved=True))
    assert not late.register()


def test_jobs_end_before_the_lease_only_where_they_must_not_overlap(store: Store) -> None:
    for word, ends in (("continue", False), ("stop", True)):
        me = member(store, on_lost_contact=word)
        me.register()
        me.heard_at -= 47
        assert not me.is_out_of_contact
        me.heard_at -= 2
        assert me.is_out_of_contact is ends


def test_an_overdue_heartbeat_is_tried_soon_but_not_at_once(store: Store) -> None:
    me = member(store)
    me.register()
    assert 29.0 < me.until_due() <= 30.0
    me.heard_at -= 100
    assert me.is_due()
    assert me.until_due() == 0.2


# -- machines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["continue", "stop"])
def test_a_machine_stops_when_its_pool_says_so_and_the_store_is_away(
    store: Store, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    store.pool("papers").configure(on_lost_contact=word)
    machine = MachineWorker(store, "w", interval=30.0)
    machine.join("papers")
    unreachable(monkeypatch, store)
    machine.beat(now=True)
    machine.heard_at -= 49
    if word == "continue":
        machine.beat(now=True)
    else:
        with pytest.raises(Fenced, match="the store cannot be reached"):
            machine.beat(now=True)


def test_a_machine_learns_that_a_claim_or_its_place_is_lost(store: Store) -> None:
    pool = store.pool("papers")
    machine = MachineWorker(store, "w", interval=30.0)
    item_id = pool.push(1)
    item = pool.claim(machine.join("papers"))
    assert item is not None
    machine.hold(item)
    pool.cancel(item_id)
    with pytest.raises(ClaimLost):
        machine.beat(now=True)
    store.workers.update_status("w", model.LOST)
    with pytest.raises(Fenced):
        machine.beat(now=True)


# -- observers ----------------------------------------------------------------------------------


class Noting(WorkerObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def began(self) -> None:
        self.notes.append("began")

    def ended(self) -> None:
        self.notes.append("ended")

    def job_began(self, item: model.WorkItem) -> None:
        self.notes.append(f"job {item.data} began")

    def job_ended(self, item: model.WorkItem, settlement: model.Settlement | None) -> None:
        self.notes.append(f"job {item.data} {settlement and settlement.outcome}")

    def settled(self, settlement: model.Settlement, is_accepted: bool) -> None:
        self.notes.append(f"{settlement.outcome} {is_accepted}")


def test_observers_hear_of_each_step(store: Store) -> None:
    pool = store.pool("papers")
    pool.configure(isolation="none", max_jobs=2, command=["true"])
    pool.push_many([1, 2])
    first, second = Noting(), Noting()
    worker = Worker(
        store,
        "papers",
        lambda job: 1 // (job.item.data - 1),
        settings=pool.state().settings,
        worker_id="w",
        observers=(first, second),
    )
    assert worker.run().left == ENOUGH
    assert first.notes == second.notes
    assert first.notes == [
        *("began", "job 1 began", "job 1 fail", "fail True"),
        *("job 2 began", "job 2 complete", "ended", "complete True"),
    ]


def test_a_worker_that_got_no_place_did_not_begin(store: Store) -> None:
    pool, observer = store.pool("papers"), Noting()
    settings = pool.state().settings
    store.workers.register(model.WorkerRegistration(worker_id="w", pool_id="papers"))
    store.workers.update_status("w", model.LOST)
    about = {"settings": settings, "worker_id": "w", "reserved": True, "observers": (observer,)}
    Worker(store, "papers", lambda _: None, **about).run()  # type: ignore[arg-type]  # mixed
    assert observer.notes == []
