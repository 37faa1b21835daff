"""Claim: who may, and which item is next."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprat.core.errors import NotClaimedHere, UnknownWorker
from sprat.core.model import WorkerRecord, WorkerRegistration, WorkItem
from sprat.core.payload import new_item
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Advance = Callable[[float], None]
Enrol = Callable[..., WorkerRecord]


def must_claim(pool: WorkPool, worker: str | WorkerRecord = "w1") -> WorkItem:
    item = pool.claim(worker)
    assert item is not None
    return item


def claim_all(pool: WorkPool, worker: str = "w1") -> list[object]:
    """Payloads in the order in which they are handed out, one by one."""
    found: list[object] = []
    while (item := pool.claim(worker)) is not None:
        found.append(item.data)
    return found


# -- who may claim ------------------------------------------------------------------------------


def test_claim_marks_the_item_as_held(pool: WorkPool, worker: WorkerRecord) -> None:
    item_id = pool.push("work")
    item = must_claim(pool)
    assert (item.id, item.data, item.status) == (item_id, "work", "claimed")
    assert (item.claimed_by, item.epoch, item.attempts) == ("w1", 1, 1)
    assert item.token
    assert item.claimed_at is not None
    assert pool.get(item_id) == item


def test_nothing_to_claim_is_none(pool: WorkPool, worker: WorkerRecord) -> None:
    assert pool.claim("w1") is None
    assert pool.claim_many("w1", 5) == []


def test_unknown_worker_cannot_claim(pool: WorkPool) -> None:
    pool.push("work")
    with pytest.raises(UnknownWorker):
        pool.claim("nobody")
    assert pool.counts().claimed == 0


def test_item_is_handed_out_once(pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1"), enrol("w2")
    pool.push("work")
    assert must_claim(pool, "w1").claimed_by == "w1"
    assert pool.claim("w2") is None


@pytest.mark.parametrize("status", ["terminating", "terminated", "lost"])
def test_worker_that_is_not_active_gets_nothing(
    store: Store, pool: WorkPool, worker: WorkerRecord, status: str
) -> None:
    pool.push("work")
    assert store.workers.update_status("w1", status)
    assert pool.claim("w1") is None
    assert pool.size() == 1


def test_old_incarnation_gets_nothing(pool: WorkPool, enrol: Enrol) -> None:
    old = enrol("w1")
    new = enrol("w1")
    pool.push("work")
    assert pool.claim(old) is None
    assert must_claim(pool, new).claimed_by == "w1"


def test_whoever_names_no_incarnation_speaks_for_the_current_one(
    pool: WorkPool, enrol: Enrol
) -> None:
    enrol("w1"), enrol("w1")
    pool.push("work")
    assert must_claim(pool, "w1").claimed_by == "w1"


def test_worker_with_an_ended_lease_that_nobody_reaped_still_claims(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance
) -> None:
    enrol("w1", lease_seconds=10)
    pool.push("work")
    advance(11)
    must_claim(pool)
    assert store.workers.reap().workers == ()


def test_claims_of_two_stores_on_the_same_data_exclude_each_other(
    pool: WorkPool, worker: WorkerRecord, open_again: Callable[[], Store]
) -> None:
    ids = pool.push_many(range(10))
    other = open_again().pool("papers")
    taken = [must_claim(p).id for _ in range(5) for p in (pool, other)]
    assert sorted(taken) == sorted(ids)
    assert pool.claim("w1") is None


def test_pools_do_not_share_items(store: Store, worker: WorkerRecord) -> None:
    store.pool("a").push("for a")
    assert store.pool("b").claim("w1") is None
    assert must_claim(store.pool("a")).data == "for a"


def test_every_claim_has_a_token_and_an_epoch_of_its_own(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push("work", max_retries=5)
    tokens: set[str | None] = set()
    for epoch in range(1, 6):
        item = must_claim(pool)
        assert item.epoch == epoch
        tokens.add(item.token)
        pool.hand_back(item)
    assert len(tokens) == 5


# -- the lease ----------------------------------------------------------------------------------


def test_claim_renews_the_lease_when_more_than_half_is_spent(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance
) -> None:
    before = enrol("w1", lease_seconds=100)
    pool.push_many([1, 2])
    advance(60)
    must_claim(pool)
    after = store.workers.get("w1")
    assert after is not None
    assert after.lease_until >= before.lease_until + 60


def test_claim_leaves_a_fresh_lease_alone(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance
) -> None:
    before = enrol("w1", lease_seconds=100)
    pool.push_many([1, 2])
    advance(40)
    must_claim(pool)
    after = store.workers.get("w1")
    assert after is not None
    assert after.lease_until == before.lease_until


# -- the order ----------------------------------------------------------------------------------


def test_first_pushed_is_first_claimed(pool: WorkPool, worker: WorkerRecord) -> None:
    for n in range(20):
        pool.push(n)
    assert claim_all(pool) == list(range(20))


def test_higher_priority_goes_first(pool: WorkPool, worker: WorkerRecord) -> None:
    for priority in (0, 5, -1, 5, 2**31 - 1, -(2**31)):
        pool.push(priority, priority=priority)
    assert claim_all(pool) == [2**31 - 1, 5, 5, 0, -1, -(2**31)]


def test_higher_priority_goes_before_the_tenant_whose_turn_it_is(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push("a1", tenant="a", priority=1)
    pool.push("a2", tenant="a", priority=1)
    pool.push("b1", tenant="b")
    assert claim_all(pool) == ["a1", "a2", "b1"]


def test_item_that_comes_back_keeps_its_place(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push_many(["first", "second", "third"])
    first = must_claim(pool)
    second = must_claim(pool)
    pool.fail(first, "try again")
    pool.hand_back(second)
    assert claim_all(pool) == ["first", "second", "third"]


def test_requeued_item_keeps_its_place(pool: WorkPool, worker: WorkerRecord) -> None:
    ids = pool.push_many(["first", "second"])
    pool.cancel(ids[0])
    pool.requeue(ids[0])
    assert claim_all(pool) == ["first", "second"]


def test_released_item_keeps_its_place(store: Store, pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1"), enrol("w2")
    pool.push_many(["first", "second"])
    must_claim(pool, "w2")
    pool.release_by_worker("w2")
    assert claim_all(pool) == ["first", "second"]


# -- tenants ------------------------------------------------------------------------------------


def test_tenants_take_turns(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push_many(["a1", "a2", "a3"], tenant="a")
    pool.push_many(["b1", "b2"], tenant="b")
    pool.push_many(["c1"], tenant="c")
    assert claim_all(pool) == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_no_tenant_counts_as_a_tenant_of_its_own(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push_many(["-1", "-2", "-3"])
    pool.push_many(["a1", "a2"], tenant="a")
    assert claim_all(pool) == ["-1", "a1", "-2", "a2", "-3"]


def test_tenant_that_never_had_a_turn_goes_first(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push_many(["a1", "a2", "a3"], tenant="a")
    pool.push("b1", tenant="b")
    assert [must_claim(pool).data for _ in range(2)] == ["a1", "b1"]
    pool.push("c1", tenant="c")
    assert claim_all(pool) == ["c1", "a2", "a3"]


def test_among_tenants_without_a_turn_the_first_pushed_item_goes_first(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push("z1", tenant="z")
    pool.push("a1", tenant="a")
    pool.push("-1")
    assert claim_all(pool) == ["z1", "a1", "-1"]


def test_turns_are_remembered_while_a_tenant_has_nothing_to_do(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push("a1", tenant="a")
    pool.push("b1", tenant="b")
    assert claim_all(pool) == ["a1", "b1"]
    pool.push("b2", tenant="b")
    pool.push("a2", tenant="a")
    assert claim_all(pool) == ["a2", "b2"]


def test_pool_that_never_saw_a_tenant_keeps_no_turns(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push_many(["-1", "-2"])
    assert must_claim(pool).data == "-1"
    pool.push("a1", tenant="a")
    assert claim_all(pool) == ["-2", "a1"]  # neither has had a turn: the first pushed


def test_turns_of_one_pool_are_not_those_of_another(store: Store, worker: WorkerRecord) -> None:
    one, other = store.pool("one"), store.pool("other")
    one.push("a1", tenant="a")
    assert claim_all(one) == ["a1"]
    other.push("a1", tenant="a")
    other.push("b1", tenant="b")
    assert claim_all(other) == ["a1", "b1"]


def test_batch_takes_tenants_in_turn(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push_many(["a1", "a2", "a3"], tenant="a")
    pool.push_many(["b1", "b2"], tenant="b")
    assert [item.data for item in pool.claim_many("w1", 4)] == ["a1", "b1", "a2", "b2"]


def test_item_that_ended_a_batch_did_not_take_its_tenants_turn(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push("a1", tenant="a")
    pool.push("a2", tenant="a", max_retries=1)  # never claimed ahead
    pool.push("b1", tenant="b")
    pool.push("b2", tenant="b")
    assert [item.data for item in pool.claim_many("w1", 4)] == ["a1", "b1"]
    assert claim_all(pool) == ["a2", "b2"]


def test_batch_follows_priorities_through_lanes(pool: WorkPool, store: Store) -> None:
    store.workers.register(WorkerRegistration(worker_id="w2", capabilities=("gpu",)))
    for data, priority, tenant, group in (
        ("a-low", 1, "a", None),
        ("a-high", 9, "a", "gpu"),
        ("a-not-ours", 99, "a", "tpu"),
        ("b-middle", 5, "b", "gpu"),
        ("a-middle", 5, "a", None),
        ("b-middle-2", 5, "b", "gpu"),
        ("b-low", 1, "b", None),
        ("plain", 5, None, None),
    ):
        pool.push(data, priority=priority, tenant=tenant, group=group)
    assert [item.data for item in pool.claim_many("w2", 20)] == [
        *("a-high", "b-middle", "plain", "a-middle", "b-middle-2", "a-low", "b-low"),
    ]


def test_item_for_a_worker_is_found_among_many_lanes(pool: WorkPool, worker: WorkerRecord) -> None:
    others = [new_item(n, group=f"g{n}", priority=n, tenant=f"t{n % 3}") for n in range(600)]
    pool.push_items(others)
    assert pool.claim("w1") is None
    pool.push("ours", priority=-1, tenant="t1")
    assert must_claim(pool).data == "ours"
    assert pool.claim("w1") is None
    assert pool.counts().pending == 600


# -- tenant limits ------------------------------------------------------------------------------


def test_tenant_at_its_limit_waits(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.configure(tenant_limit=2)
    pool.push_many(["a1", "a2", "a3", "a4"], tenant="a")
    pool.push_many(["b1"], tenant="b")
    held = [must_claim(pool) for _ in range(3)]
    assert [item.data for item in held] == ["a1", "b1", "a2"]
    assert pool.claim("w1") is None
    pool.complete(held[0])
    assert must_claim(pool).data == "a3"
    assert pool.claim("w1") is None


@pytest.mark.parametrize("end", ["complete", "fail", "hand_back", "cancel", "release"])
def test_every_end_of_a_claim_makes_room_for_the_tenant(
    pool: WorkPool, enrol: Enrol, end: str
) -> None:
    enrol("w1"), enrol("w2")
    pool.configure(tenant_limit=1)
    pool.push_many(["a1", "a2"], tenant="a", priority=0)
    item = must_claim(pool)
    assert pool.claim("w2") is None
    if end == "cancel":
        pool.cancel(item.id)
    elif end == "release":
        pool.release_by_worker("w1")
    else:
        getattr(pool, end)(item)
    must_claim(pool, "w2")
    assert pool.claim("w1") is None


def test_limit_holds_inside_a_batch(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.configure(tenant_limits={"a": 2})
    pool.push_many(["a1", "a2", "a3"], tenant="a")
    pool.push_many(["b1", "b2", "b3"], tenant="b")
    batch = [item.data for item in pool.claim_many("w1", 6)]
    assert batch == ["a1", "b1", "a2", "b2", "b3"]


def test_exception_to_the_limit_beats_the_limit(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.configure(tenant_limit=1, tenant_limits={"big": 3, "blocked": 0})
    for tenant in ("big", "small", "blocked"):
        pool.push_many([f"{tenant}{n}" for n in range(4)], tenant=tenant)
    assert sorted(map(str, claim_all(pool))) == ["big0", "big1", "big2", "small0"]


def test_items_without_a_tenant_have_no_limit(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.configure(tenant_limit=1)
    pool.push_many(range(5))
    assert claim_all(pool) == list(range(5))


def test_lower_priority_runs_when_the_higher_one_is_at_its_limit(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.configure(tenant_limit=1)
    pool.push_many(["a1", "a2"], tenant="a", priority=9)
    pool.push("b1", tenant="b")
    assert claim_all(pool) == ["a1", "b1"]


def test_limit_counts_the_pool_not_the_store(store: Store, worker: WorkerRecord) -> None:
    for name in ("one", "other"):
        store.pool(name).configure(tenant_limit=1)
        store.pool(name).push_many([1, 2], tenant="a")
    assert claim_all(store.pool("one")) == [1]
    assert claim_all(store.pool("other")) == [1]


# -- groups -------------------------------------------------------------------------------------


def test_group_goes_only_to_workers_with_that_capability(pool: WorkPool, enrol: Enrol) -> None:
    enrol("plain"), enrol("gpu", capabilities=["gpu", "big"])
    pool.push("needs gpu", group="gpu")
    assert pool.claim("plain") is None
    assert must_claim(pool, "gpu").data == "needs gpu"


def test_item_without_a_group_goes_to_anybody(pool: WorkPool, enrol: Enrol) -> None:
    enrol("gpu", capabilities=["gpu"])
    pool.push("anybody")
    assert must_claim(pool, "gpu").data == "anybody"


def test_groups_are_taken_in_order_of_arrival(pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1", capabilities=["x", "y"])
    for n, group in enumerate(["y", None, "x", "z", "y", "x", None]):
        pool.push(n, group=group)
    assert claim_all(pool) == [0, 1, 2, 4, 5, 6]


def test_higher_priority_of_another_group_does_not_block(pool: WorkPool, enrol: Enrol) -> None:
    enrol("plain")
    pool.push("needs gpu", group="gpu", priority=9)
    pool.push("anybody")
    assert must_claim(pool, "plain").data == "anybody"


def test_tenant_with_no_eligible_item_does_not_lose_its_turn(pool: WorkPool, enrol: Enrol) -> None:
    enrol("plain"), enrol("gpu", capabilities=["gpu"])
    pool.push("a1", tenant="a", group="gpu")
    pool.push_many(["b1", "b2"], tenant="b")
    assert must_claim(pool, "plain").data == "b1"
    assert must_claim(pool, "gpu").data == "a1"


# -- paused, delayed, backlog -------------------------------------------------------------------


def test_paused_pool_hands_out_nothing(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("work")
    pool.pause()
    assert pool.claim("w1") is None
    assert pool.size() == 1
    pool.resume()
    assert must_claim(pool).data == "work"


def test_pause_ends_by_itself(pool: WorkPool, worker: WorkerRecord, advance: Advance) -> None:
    pool.push("work")
    pool.pause(60)
    advance(50)
    assert pool.claim("w1") is None
    advance(11)
    assert must_claim(pool).data == "work"


def test_delayed_item_is_ready_when_its_time_has_come(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.push("later", delay=60)
    assert pool.claim("w1") is None
    advance(50)
    assert pool.claim("w1") is None
    advance(11)
    assert must_claim(pool).data == "later"


def test_item_that_was_delayed_has_the_place_of_its_push(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.push("first", delay=60)
    pool.push("second", delay=30)
    pool.push("third")
    advance(61)
    assert claim_all(pool) == ["first", "second", "third"]


def test_backlog_is_claimed_only_after_a_requeue(pool: WorkPool, worker: WorkerRecord) -> None:
    item_id = pool.push("parked", backlog=True, delay=5)
    assert pool.claim("w1") is None
    assert pool.requeue(item_id) == 1
    assert must_claim(pool).data == "parked"


# -- batches ------------------------------------------------------------------------------------


def test_only_the_first_item_of_a_batch_is_started(pool: WorkPool, worker: WorkerRecord) -> None:
    ids = pool.push_many(range(4))
    batch = pool.claim_many("w1", 3)
    assert [item.data for item in batch] == [0, 1, 2]
    assert [pool.get(item_id).attempts for item_id in ids] == [1, 0, 0, 0]
    assert [pool.get(item_id).status for item_id in ids] == ["claimed"] * 3 + ["pending"]


def test_item_claimed_ahead_shows_the_number_that_its_attempt_will_have(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push_many(["a", "b"], max_retries=5)
    first, second = (must_claim(pool) for _ in range(2))
    pool.fail(first), pool.fail(second)
    batch = pool.claim_many("w1", 2)
    assert [item.attempts for item in batch] == [2, 2]
    assert [pool.get(item).attempts for item in batch] == [2, 1]


def test_items_of_a_batch_have_tokens_of_their_own(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push_many(range(5))
    assert len({item.token for item in pool.claim_many("w1", 5)}) == 5


def test_batch_ends_before_an_item_whose_next_attempt_is_its_last(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push("a")
    pool.push("last", max_retries=1)
    pool.push("b")
    assert [item.data for item in pool.claim_many("w1", 3)] == ["a"]
    assert [item.data for item in pool.claim_many("w1", 3)] == ["last", "b"]


def test_batch_ends_before_a_suspect(pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1"), enrol("w2")
    pool.push_many(["a", "b", "c"], max_retries=9)
    pool.claim_many("w1", 2)
    pool.release_by_worker("w1")  # b may have been started: nobody knows
    assert [item.data for item in pool.claim_many("w2", 3)] == ["a"]
    assert [item.data for item in pool.claim_many("w2", 3)] == ["b", "c"]


def test_claim_of_zero_items_is_no_claim(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("work")
    assert pool.claim_many("w1", 0) == []
    assert pool.size() == 1


# -- start --------------------------------------------------------------------------------------


def test_start_counts_an_item_claimed_ahead(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.push_many(["a", "b"])
    _, ahead = pool.claim_many("w1", 2, announced=True)
    advance(30)
    assert pool.start(ahead)
    started = pool.get(ahead)
    assert started.attempts == 1
    assert started.claimed_at is not None
    assert ahead.claimed_at is not None
    assert started.claimed_at >= ahead.claimed_at + 30
    assert started.token == ahead.token


def test_start_repeated_changes_nothing(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.push_many(["a", "b"])
    first, ahead = pool.claim_many("w1", 2, announced=True)
    assert pool.start(ahead)
    before = [pool.get(first), pool.get(ahead)]
    advance(30)
    assert pool.start(ahead)
    assert pool.start(first)
    assert [pool.get(first), pool.get(ahead)] == before


def test_start_of_a_lost_claim_is_false(pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1"), enrol("w2")
    pool.push_many(["a", "b"])
    _, ahead = pool.claim_many("w1", 2, announced=True)
    pool.release_by_worker("w1")
    assert not pool.start(ahead)
    assert pool.get(ahead).attempts == 0
    pool.claim_many("w2", 2)
    before = pool.get(ahead)
    assert not pool.start(ahead)
    assert pool.get(ahead) == before


def test_start_of_an_unclaimed_item_is_an_error(pool: WorkPool) -> None:
    item_id = pool.push("work")
    assert not pool.start(pool.get(item_id))
    with pytest.raises(NotClaimedHere):
        pool.start(item_id)
    assert pool.get(item_id).attempts == 0


def test_start_of_an_unknown_item_is_an_error(pool: WorkPool) -> None:
    with pytest.raises(KeyError):
        pool.start("nothing")


def test_start_rides_on_an_exchange(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push_many(["a", "b", "c"])
    first, second = pool.claim_many("w1", 2, announced=True)
    answer = pool.exchange(
        "w1", settlements=[pool.completion(first, "A")], start=second, claim=1, announced=True
    )
    assert (answer.settled, answer.started) == ((True,), True)
    assert [item.data for item in answer.items] == ["c"]
    assert pool.get(first).result == "A"
    assert pool.get(second).attempts == 1
