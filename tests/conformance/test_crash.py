"""A worker that dies: what becomes of its items, and who pays for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprat.core.model import WorkerRecord, WorkItem
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Advance = Callable[[float], None]
Enrol = Callable[..., WorkerRecord]


def reap(store: Store, advance: Advance) -> None:
    advance(11)
    assert store.workers.reap().workers == ("w1",)


def lose(store: Store, advance: Advance) -> None:
    assert store.workers.update_status("w1", "lost", reason="it was shot")


def register_again(store: Store, advance: Advance) -> None:
    store.workers.register(store_registration("w1"))


def release(store: Store, advance: Advance) -> None:
    store.pool("papers").release_by_worker("w1")


def store_registration(worker_id: str) -> object:
    from sprat.core.model import WorkerRegistration

    return WorkerRegistration(worker_id=worker_id, lease_seconds=10.0)


Death = Callable[[Store, Advance], None]
DEATHS: tuple[Death, ...] = (reap, lose, register_again, release)
every_death = pytest.mark.parametrize("die", DEATHS, ids=lambda death: death.__name__)


@pytest.fixture
def mortal(enrol: Enrol) -> WorkerRecord:
    return enrol("w1", lease_seconds=10)


def must_claim(pool: WorkPool, worker: str = "w1") -> WorkItem:
    item = pool.claim(worker)
    assert item is not None
    return item


@every_death
def test_started_item_is_pending_again_and_charged(
    store: Store, pool: WorkPool, mortal: WorkerRecord, advance: Advance, die: Death
) -> None:
    pool.push("work", max_retries=3)
    item = must_claim(pool)
    die(store, advance)
    found = pool.get(item)
    assert (found.status, found.attempts, found.claimed_by) == ("pending", 1, None)
    assert (found.token, found.error) == (None, None)


@every_death
def test_started_item_is_poisoned_when_it_was_its_last_attempt(
    store: Store, pool: WorkPool, mortal: WorkerRecord, advance: Advance, die: Death
) -> None:
    pool.push("work", max_retries=1)
    item = must_claim(pool)
    die(store, advance)
    found = pool.get(item)
    assert (found.status, found.attempts) == ("poisoned", 1)
    assert found.error is not None
    assert found.error.startswith("worker w1 was lost")
    assert found.finished_at is not None
    assert found.token is None


def test_error_of_a_poisoned_item_has_the_reason(
    store: Store, pool: WorkPool, mortal: WorkerRecord, advance: Advance
) -> None:
    pool.push("work", max_retries=1)
    item = must_claim(pool)
    lose(store, advance)
    assert "it was shot" in str(pool.get(item).error)


@every_death
@pytest.mark.parametrize("max_retries", [1, 2, 4])
def test_item_that_kills_its_workers_is_poisoned_after_exactly_max_retries_starts(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance, die: Death, max_retries: int
) -> None:
    item_id = pool.push("deadly", max_retries=max_retries)
    for start in range(1, max_retries + 1):
        enrol("w1", lease_seconds=10)
        assert must_claim(pool).attempts == start
        die(store, advance)
    assert (pool.get(item_id).status, pool.get(item_id).attempts) == ("poisoned", max_retries)
    enrol("w1")
    assert pool.claim("w1") is None


@every_death
def test_item_claimed_ahead_and_announced_goes_back_uncharged(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance, die: Death
) -> None:
    enrol("w1", lease_seconds=10), enrol("w2")
    pool.push_many(["a", "b", "c"])
    _, b, _ = pool.claim_many("w1", 3, announced=True)
    die(store, advance)
    assert [(i.status, i.attempts) for i in pool.items()] == [
        ("pending", 1),
        ("pending", 0),
        ("pending", 0),
    ]
    # and no doubt is on it: it may be claimed ahead again
    assert [item.data for item in pool.claim_many("w2", 3)] == ["a", "b", "c"]
    assert pool.get(b).attempts == 0


@every_death
def test_item_claimed_ahead_and_started_is_charged(
    store: Store, pool: WorkPool, mortal: WorkerRecord, advance: Advance, die: Death
) -> None:
    pool.push_many(["a", "b"])
    a, b = pool.claim_many("w1", 2, announced=True)
    pool.complete(a)
    assert pool.start(b)
    die(store, advance)
    assert (pool.get(b).status, pool.get(b).attempts) == ("pending", 1)


@every_death
def test_item_claimed_ahead_unannounced_becomes_a_suspect(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance, die: Death
) -> None:
    enrol("w1", lease_seconds=10), enrol("w2")
    pool.push_many(["a", "b", "c"])
    pool.claim_many("w1", 3)
    die(store, advance)
    assert [(i.status, i.attempts) for i in pool.items()] == [
        ("pending", 1),
        ("pending", 0),
        ("pending", 0),
    ]
    # suspects run alone
    for name in ("a", "b", "c"):
        assert [item.data for item in pool.claim_many("w2", 3)] == [name]


def test_suspect_pays_for_its_doubt_when_its_next_worker_dies_too(
    pool: WorkPool, enrol: Enrol
) -> None:
    enrol("w1"), enrol("w2")
    pool.push("a")
    item_id = pool.push("b", max_retries=3)
    pool.claim_many("w1", 2)
    pool.release_by_worker("w1")
    pool.complete(must_claim(pool, "w2"))
    assert must_claim(pool, "w2").attempts == 1
    pool.release_by_worker("w2")
    assert (pool.get(item_id).status, pool.get(item_id).attempts) == ("pending", 2)
    must_claim(pool, "w2")
    pool.release_by_worker("w2")  # no doubt was left: this is one more start
    assert (pool.get(item_id).status, pool.get(item_id).attempts) == ("poisoned", 3)


def test_doubt_never_charges_more_than_max_retries(pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1"), enrol("w2")
    pool.push("a")
    item_id = pool.push("b", max_retries=2)
    pool.claim_many("w1", 2)
    pool.release_by_worker("w1")
    pool.complete(must_claim(pool, "w2"))
    must_claim(pool, "w2")
    pool.release_by_worker("w2")
    assert (pool.get(item_id).status, pool.get(item_id).attempts) == ("poisoned", 2)


def test_doubt_is_gone_when_the_suspect_fails_in_good_order(pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1"), enrol("w2")
    pool.push("a")
    item_id = pool.push("b", max_retries=4)
    pool.claim_many("w1", 2)
    pool.release_by_worker("w1")
    pool.complete(must_claim(pool, "w2"))
    pool.fail(must_claim(pool, "w2"), "in good order")
    must_claim(pool, "w2")
    pool.release_by_worker("w2")
    assert (pool.get(item_id).status, pool.get(item_id).attempts) == ("pending", 2)


def test_suspect_that_is_handed_back_stays_a_suspect(pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1"), enrol("w2")
    pool.push_many(["a", "b", "c"], max_retries=9)
    pool.claim_many("w1", 2)
    pool.release_by_worker("w1")
    pool.complete(must_claim(pool, "w2"))
    pool.hand_back(must_claim(pool, "w2"))
    must_claim(pool, "w2")
    pool.release_by_worker("w2")
    assert pool.items()[1].attempts == 2


# -- somebody watched ---------------------------------------------------------------------------


def test_items_named_as_started_are_charged_and_the_others_free_of_doubt(
    pool: WorkPool, enrol: Enrol
) -> None:
    enrol("w1"), enrol("w2")
    pool.push_many(["a", "b", "c", "d"], max_retries=9)
    a, b, _, _ = pool.claim_many("w1", 4)
    pool.complete(a)
    assert pool.release_by_worker("w1", started=[b.id]) == 3
    assert [i.attempts for i in pool.items()] == [1, 1, 0, 0]
    assert [item.data for item in pool.claim_many("w2", 4)] == ["b", "c", "d"]


def test_item_named_as_started_is_poisoned_when_it_was_its_last_attempt(
    pool: WorkPool, enrol: Enrol
) -> None:
    enrol("w1")
    pool.push("a")
    item_id = pool.push("b", max_retries=2)
    for _ in range(2):
        first = pool.claim_many("w1", 2)
        if len(first) == 1:
            break
        pool.release_by_worker("w1", started=[item_id])
        assert pool.get(item_id).attempts == 1
    assert [item.data for item in first] == ["a"]  # b would be on its last attempt
    must_claim(pool)
    pool.release_by_worker("w1", started=[item_id])
    assert (pool.get(item_id).status, pool.get(item_id).attempts) == ("poisoned", 2)


def test_lost_with_started_says_who_pays(
    store: Store, pool: WorkPool, mortal: WorkerRecord
) -> None:
    pool.push_many(["a", "b", "c"])
    _, b, _ = pool.claim_many("w1", 3)
    assert store.workers.update_status("w1", "lost", started=[b.id])
    assert [i.attempts for i in pool.items()][1:] == [1, 0]


# -- leaving in good order ----------------------------------------------------------------------


def test_terminated_worker_hands_its_items_back(
    store: Store, pool: WorkPool, mortal: WorkerRecord
) -> None:
    pool.push_many(["a", "b"], max_retries=2)
    pool.push("last", max_retries=1)
    pool.claim_many("w1", 2)
    must_claim(pool)
    assert store.workers.update_status("w1", "terminated")
    assert [(i.status, i.attempts, i.claimed_by) for i in pool.items()] == [
        ("pending", 0, None)
    ] * 3


def test_items_of_a_terminated_worker_are_under_no_suspicion(
    store: Store, pool: WorkPool, enrol: Enrol
) -> None:
    enrol("w1"), enrol("w2")
    pool.push_many(["a", "b", "c"])
    pool.claim_many("w1", 3)
    store.workers.update_status("w1", "terminated")
    assert [item.data for item in pool.claim_many("w2", 3)] == ["a", "b", "c"]


# -- release ------------------------------------------------------------------------------------


def test_release_says_how_many(pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1"), enrol("w2")
    pool.push_many(range(5))
    pool.claim_many("w1", 3)
    must_claim(pool, "w2")
    assert pool.release_by_worker("w1") == 3
    assert pool.release_by_worker("w1") == 0
    assert pool.counts().claimed == 1


def test_release_frees_items_of_this_pool_only(store: Store, enrol: Enrol) -> None:
    enrol("w1")
    one, other = store.pool("one"), store.pool("other")
    for pool in (one, other):
        pool.push("work")
        must_claim(pool)
    assert one.release_by_worker("w1") == 1
    assert (one.counts().claimed, other.counts().claimed) == (0, 1)


def test_release_leaves_the_worker_as_it_is(
    store: Store, pool: WorkPool, mortal: WorkerRecord
) -> None:
    pool.push("work")
    must_claim(pool)
    pool.release_by_worker("w1")
    found = store.workers.get("w1")
    assert found is not None
    assert (found.status, found.claims) == ("active", 0)
    assert must_claim(pool).attempts == 2


def test_lost_worker_frees_its_items_in_every_pool(
    store: Store, mortal: WorkerRecord, advance: Advance
) -> None:
    for name in ("one", "other"):
        store.pool(name).push("work")
        must_claim(store.pool(name))
    advance(11)
    assert store.workers.reap().released == 2
    assert [store.pool(name).size() for name in ("one", "other")] == [1, 1]


def test_checkpoint_survives_the_crash(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance
) -> None:
    enrol("w1", lease_seconds=10), enrol("w2")
    pool.push("work")
    item = must_claim(pool)
    assert pool.save_checkpoint(item, {"page": 7})
    reap(store, advance)
    assert must_claim(pool, "w2").checkpoint == {"page": 7}
