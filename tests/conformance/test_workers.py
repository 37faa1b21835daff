"""Workers: registration, incarnations, heartbeats, and a life that only goes forward."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprat.core.errors import UnknownWorker
from sprat.core.model import Decision, WorkerFilter, WorkerRecord, WorkerRegistration, WorkItem
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Advance = Callable[[float], None]
Enrol = Callable[..., WorkerRecord]

ORDER = ("starting", "active", "terminating", "terminated", "lost")


def must_get(store: Store, worker_id: str = "w1") -> WorkerRecord:
    worker = store.workers.get(worker_id)
    assert worker is not None
    return worker


def must_claim(pool: WorkPool, worker: str | WorkerRecord = "w1") -> WorkItem:
    item = pool.claim(worker)
    assert item is not None
    return item


@pytest.fixture
def reserve(pool: WorkPool) -> Callable[[], str]:
    """Records a decision that launches one worker, and answers its id."""

    def reserve(**about: object) -> str:
        decision = Decision(
            pool="papers",
            policy="test",
            direction="up",
            current=0,
            desired=1,
            reason="a test",
            launch=1,
            max_workers=100,
            **about,
        )
        recorded = pool.record(decision, version=pool.observe(decision.group).version)
        assert recorded is not None
        return recorded.launched[0]

    return reserve


# -- register -----------------------------------------------------------------------------------


def test_registered_worker_is_active_with_what_it_said(store: Store) -> None:
    answer = store.workers.register(
        WorkerRegistration(
            worker_id="w1",
            pool_id="papers",
            host="node1",
            pid=42,
            capabilities=["gpu", "big"],
            lease_seconds=25,
            metadata={"version": 3},
        )
    )
    assert (answer.worker_id, answer.status, answer.incarnation) == ("w1", "active", 1)
    assert (answer.pool_id, answer.host, answer.pid) == ("papers", "node1", 42)
    assert answer.capabilities == ("gpu", "big")
    assert answer.metadata == {"version": 3}
    assert answer.lease_seconds == 25
    assert answer.lease_until == pytest.approx(answer.last_heartbeat + 25)
    assert (answer.claims, answer.current_task_id, answer.reason) == (0, None, None)
    assert store.workers.get("w1") == answer


def test_unknown_worker_is_none(store: Store) -> None:
    assert store.workers.get("nobody") is None


def test_each_registration_is_a_new_incarnation(enrol: Enrol) -> None:
    assert [enrol("w1").incarnation for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("status", ["active", "terminating", "terminated", "lost"])
def test_worker_comes_back_whatever_its_row_said(store: Store, enrol: Enrol, status: str) -> None:
    enrol("w1")
    store.workers.update_status("w1", status, reason="before")
    again = enrol("w1", host="elsewhere")
    assert (again.status, again.incarnation, again.host) == ("active", 2, "elsewhere")
    assert again.reason is None


def test_new_incarnation_says_everything_anew(store: Store, enrol: Enrol) -> None:
    enrol("w1", capabilities=["gpu"], metadata={"old": 1}, lease_seconds=10)
    again = enrol("w1", metadata={"new": 2}, lease_seconds=20)
    assert (again.capabilities, again.metadata, again.lease_seconds) == ((), {"new": 2}, 20)


def test_new_incarnation_releases_the_claims_of_the_old_one(
    store: Store, pool: WorkPool, enrol: Enrol
) -> None:
    enrol("w1")
    pool.push("work", max_retries=2)
    item = must_claim(pool)
    assert enrol("w1").claims == 0
    found = pool.get(item)
    assert (found.status, found.attempts) == ("pending", 1)  # charged, as after a crash


def test_claims_are_counted_and_the_running_item_is_named(
    store: Store, pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push_many(["a", "b", "c"])
    batch = pool.claim_many("w1", 2)
    found = must_get(store)
    assert (found.claims, found.current_task_id) == (2, batch[0].id)
    pool.settle_many([pool.completion(item) for item in batch])
    found = must_get(store)
    assert (found.claims, found.current_task_id) == (0, None)


# -- reserved workers ---------------------------------------------------------------------------


def test_reserved_worker_becomes_active(store: Store, reserve: Callable[..., str]) -> None:
    worker_id = reserve()
    assert must_get(store, worker_id).status == "starting"
    answer = store.workers.register(
        WorkerRegistration(worker_id=worker_id, reserved=True, host="h", pid=1, lease_seconds=30)
    )
    assert (answer.status, answer.host, answer.pid, answer.pool_id) == ("active", "h", 1, "papers")
    assert answer.lease_until == pytest.approx(answer.last_heartbeat + 30)


def test_reserved_worker_keeps_the_capabilities_of_its_launch(
    store: Store, reserve: Callable[..., str]
) -> None:
    worker_id = reserve(capabilities=("gpu",))
    answer = store.workers.register(WorkerRegistration(worker_id=worker_id, reserved=True))
    assert answer.capabilities == ("gpu",)


def test_repeated_register_of_a_reserved_worker_is_the_same_incarnation(
    store: Store, pool: WorkPool, reserve: Callable[..., str]
) -> None:
    registration = WorkerRegistration(worker_id=reserve(), reserved=True, host="h", pid=1)
    first = store.workers.register(registration)
    pool.push("work")
    item = must_claim(pool, first)
    again = store.workers.register(registration)
    assert (again.status, again.incarnation) == ("active", first.incarnation)
    assert pool.get(item) == item


@pytest.mark.parametrize("other", [{"host": "h", "pid": 2}, {"host": "i", "pid": 1}])
def test_reservation_is_taken_once(
    store: Store, reserve: Callable[..., str], other: dict[str, object]
) -> None:
    registration = WorkerRegistration(worker_id=reserve(), reserved=True, host="h", pid=1)
    store.workers.register(registration)
    before = must_get(store, registration.worker_id)
    answer = store.workers.register(registration.replace(**other))
    assert (answer.host, answer.pid) == ("h", 1)  # not the one who asks: it has to leave
    assert must_get(store, registration.worker_id) == before


@pytest.mark.parametrize("status", ["terminated", "lost"])
def test_reserved_worker_whose_launch_was_given_up_has_to_leave(
    store: Store, reserve: Callable[..., str], status: str
) -> None:
    worker_id = reserve()
    store.workers.update_status(worker_id, status)
    before = must_get(store, worker_id)
    answer = store.workers.register(WorkerRegistration(worker_id=worker_id, reserved=True))
    assert answer.status == status
    assert must_get(store, worker_id) == before


def test_reserved_worker_past_its_deadline_has_to_leave_once_reaped(
    store: Store, reserve: Callable[..., str], advance: Advance
) -> None:
    worker_id = reserve(start_deadline_seconds=10.0)
    advance(11)
    store.workers.reap()
    answer = store.workers.register(WorkerRegistration(worker_id=worker_id, reserved=True))
    assert answer.status == "lost"


def test_unknown_reserved_worker_is_refused(store: Store) -> None:
    with pytest.raises(UnknownWorker):
        store.workers.register(WorkerRegistration(worker_id="w-nobody", reserved=True))
    assert store.workers.get("w-nobody") is None


# -- heartbeat ----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["active", "terminating"])
def test_heartbeat_extends_the_lease(
    store: Store, enrol: Enrol, advance: Advance, status: str
) -> None:
    before = enrol("w1", lease_seconds=10)
    store.workers.update_status("w1", status)
    advance(8)
    assert store.workers.heartbeat("w1").status == status
    after = must_get(store)
    assert after.last_heartbeat >= before.last_heartbeat + 8
    assert after.lease_until == pytest.approx(after.last_heartbeat + 10)
    advance(8)
    assert store.workers.reap().workers == ()


def test_heartbeat_merges_metadata_key_by_key(store: Store, enrol: Enrol) -> None:
    enrol("w1", metadata={"a": 1, "b": {"x": 1}})
    store.workers.heartbeat("w1", {"b": {"y": 2}, "c": None})
    assert must_get(store).metadata == {"a": 1, "b": {"y": 2}, "c": None}
    store.workers.heartbeat("w1", {})
    store.workers.heartbeat("w1")
    assert must_get(store).metadata == {"a": 1, "b": {"y": 2}, "c": None}


@pytest.mark.parametrize("status", ["terminated", "lost"])
def test_heartbeat_of_an_ended_worker_changes_nothing(
    store: Store, worker: WorkerRecord, advance: Advance, status: str
) -> None:
    store.workers.update_status("w1", status)
    before = must_get(store)
    advance(5)
    assert store.workers.heartbeat("w1", {"a": 1}).status == status
    assert must_get(store) == before


def test_heartbeat_of_a_worker_that_is_still_starting_changes_nothing(
    store: Store, reserve: Callable[..., str], advance: Advance
) -> None:
    worker_id = reserve()
    before = must_get(store, worker_id)
    advance(5)
    assert store.workers.heartbeat(worker_id).status == "starting"
    assert must_get(store, worker_id) == before


def test_heartbeat_of_an_old_incarnation_is_told_lost(
    store: Store, enrol: Enrol, advance: Advance
) -> None:
    old = enrol("w1")
    enrol("w1")
    before = must_get(store)
    advance(5)
    assert store.workers.heartbeat(old, {"a": 1}).status == "lost"
    assert must_get(store) == before


def test_heartbeat_says_which_claims_are_lost(store: Store, pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1"), enrol("w2")
    pool.push_many(["held", "cancelled", "settled", "taken"])
    held, cancelled, settled = (must_claim(pool) for _ in range(3))
    taken = must_claim(pool, "w2")
    pool.cancel(cancelled.id)
    pool.complete(settled)
    pool.release_by_worker("w2")
    again = must_claim(pool, "w1")
    assert again.id == taken.id
    unknown = held.replace(id="nothing")
    answer = store.workers.heartbeat(
        "w1", holding=[held, cancelled, settled, taken, again, unknown]
    )
    assert answer.status == "active"
    assert answer.lost == (cancelled.id, settled.id, taken.id, "nothing")


def test_heartbeat_of_an_old_incarnation_says_that_its_claims_are_lost(
    store: Store, pool: WorkPool, enrol: Enrol
) -> None:
    old = enrol("w1")
    pool.push("work")
    item = must_claim(pool, old)
    enrol("w1")
    answer = store.workers.heartbeat(old, holding=[item])
    assert (answer.status, answer.lost) == ("lost", (item.id,))


def test_heartbeat_without_a_lease_revives_a_worker_that_nobody_reaped(
    store: Store, enrol: Enrol, advance: Advance
) -> None:
    enrol("w1", lease_seconds=10)
    advance(11)
    assert store.workers.heartbeat("w1").status == "active"
    assert store.workers.reap().workers == ()


def test_unknown_worker_cannot_heartbeat(store: Store) -> None:
    with pytest.raises(UnknownWorker):
        store.workers.heartbeat("nobody")


# -- status -------------------------------------------------------------------------------------


def bring_to(store: Store, reserve: Callable[..., str], status: str) -> str:
    worker_id = reserve()
    if status != "starting":
        store.workers.register(WorkerRegistration(worker_id=worker_id, reserved=True))
    if status not in ("starting", "active"):
        assert store.workers.update_status(worker_id, status)
    assert must_get(store, worker_id).status == status
    return worker_id


@pytest.mark.parametrize("now", ORDER)
@pytest.mark.parametrize("wanted", ORDER)
def test_worker_only_moves_forward(
    store: Store, reserve: Callable[..., str], now: str, wanted: str
) -> None:
    worker_id = bring_to(store, reserve, now)
    before = must_get(store, worker_id)
    ended = now in ("terminated", "lost")
    forward = not ended and ORDER.index(wanted) > ORDER.index(now)
    assert store.workers.update_status(worker_id, wanted) is (forward or now == wanted)
    after = must_get(store, worker_id)
    if not forward:
        assert after == before
    elif (now, wanted) == ("starting", "terminating"):
        assert after.status == "terminated"  # the launch is given up
    else:
        assert after.status == wanted


def test_status_keeps_its_reason(store: Store, worker: WorkerRecord) -> None:
    store.workers.update_status("w1", "terminating", reason="scaled down")
    assert must_get(store).reason == "scaled down"


def test_old_incarnation_cannot_change_the_status(store: Store, enrol: Enrol) -> None:
    old = enrol("w1")
    new = enrol("w1")
    assert not store.workers.update_status(old, "terminated")
    assert not store.workers.update_status(old, "active")
    assert must_get(store).status == "active"
    assert store.workers.update_status(new, "terminated")


def test_terminating_worker_keeps_its_claims(
    store: Store, pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push("work")
    item = must_claim(pool)
    store.workers.update_status("w1", "terminating")
    assert pool.get(item) == item


def test_unknown_worker_has_no_status(store: Store) -> None:
    with pytest.raises(UnknownWorker):
        store.workers.update_status("nobody", "lost")


# -- lists --------------------------------------------------------------------------------------


def ids(workers: list[WorkerRecord]) -> list[str]:
    return [worker.worker_id for worker in workers]


def test_workers_are_listed_oldest_first(store: Store, enrol: Enrol, advance: Advance) -> None:
    for name in ("z", "a", "m"):
        enrol(name)
        advance(1)
    assert ids(store.workers.list()) == ["z", "a", "m"]
    enrol("z")
    assert ids(store.workers.list()) == ["a", "m", "z"]


def test_workers_are_listed_by_what_is_asked(store: Store, enrol: Enrol, advance: Advance) -> None:
    enrol("old", pool_id="papers")
    advance(30)
    enrol("gpu", capabilities=["gpu"])
    enrol("big", capabilities=["gpu", "big"], pool_id="papers")
    enrol("gone")
    store.workers.update_status("gone", "terminated")
    listed = store.workers.list
    assert ids(listed(status="terminated")) == ["gone"]
    assert set(ids(listed(status=["active", "terminated"]))) == {"old", "gpu", "big", "gone"}
    assert ids(listed(status=[])) == []
    assert set(ids(listed(capability="gpu"))) == {"gpu", "big"}
    assert ids(listed(capability="gp")) == []
    assert set(ids(listed(pool_id="papers"))) == {"old", "big"}
    assert ids(listed(stale_threshold_seconds=20)) == ["old"]
    assert ids(listed(WorkerFilter(capability="gpu", pool_id="papers"))) == ["big"]


def test_workers_are_seen_by_whoever_opens_the_store(
    worker: WorkerRecord, open_again: Callable[[], Store]
) -> None:
    assert open_again().workers.get("w1") == worker
