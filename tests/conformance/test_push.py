"""Push: durable, all or none, and safe to repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sprat.core import payload
from sprat.core.errors import InvalidInput, KeyConflict, UnknownItem
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Reopen = Callable[[], Store]


def test_pushed_item_is_pending_with_what_was_said_about_it(pool: WorkPool) -> None:
    item_id = pool.push(
        {"paper": "2401.00001", "pages": [1, 2.5, None, True]},
        max_retries=5,
        priority=-3,
        tenant="acme",
        group="gpu",
        key="2401.00001",
    )
    item = pool.get(item_id)
    assert item.id == item_id
    assert item.pool == "papers"
    assert item.data == {"paper": "2401.00001", "pages": [1, 2.5, None, True]}
    assert (item.status, item.attempts, item.max_retries) == ("pending", 0, 5)
    assert (item.priority, item.tenant, item.group, item.key) == (-3, "acme", "gpu", "2401.00001")
    assert (item.claimed_by, item.token, item.epoch) == (None, None, 0)
    assert (item.result, item.error, item.checkpoint, item.progress) == (None, None, None, None)
    assert item.created_at > 0
    assert item.claimed_at is None
    assert item.finished_at is None


def test_attempts_have_two_names_and_one_meaning(pool: WorkPool) -> None:
    ids = [
        pool.push(1, max_attempts=5),
        pool.push(1, max_retries=5),
        *pool.push_many([1, 2], max_attempts=5),
        *pool.push_many([1], max_attempts=5, max_retries=5),
    ]
    assert {pool.get(item_id).max_retries for item_id in ids} == {5}
    with pytest.raises(InvalidInput, match="max_attempts is 4 and max_retries is 5: both mean"):
        pool.push(1, max_attempts=4, max_retries=5)
    assert pool.size() == len(ids)


@pytest.mark.parametrize(
    "data",
    [None, True, False, 0, 1, -1, 1.0, 1e300, 2**63, "", "ü\u2028\U0001f41f", "a\0b", [], {}, [[]]],
)
def test_payload_comes_back_equal_and_of_the_same_type(pool: WorkPool, data: object) -> None:
    found = pool.get(pool.push(data)).data
    assert found == data
    assert type(found) is type(data)


def test_pushed_item_is_seen_by_whoever_opens_the_store(pool: WorkPool, open_again: Reopen) -> None:
    item_id = pool.push("work")
    other = open_again()
    assert other.pool("papers").get(item_id).data == "work"
    assert other.get(item_id).pool == "papers"
    assert other.pools() == ["papers"]


def test_push_many_keeps_the_order_of_arrival(pool: WorkPool) -> None:
    ids = pool.push_many(range(50), priority=7, tenant="acme")
    items = pool.items()
    assert [item.id for item in items] == ids
    assert [item.data for item in items] == list(range(50))
    assert {(item.priority, item.tenant) for item in items} == {(7, "acme")}


@pytest.mark.parametrize("n", [1, 49, 50, 51, 100, 149])
def test_push_many_stores_each_once_whatever_their_number(pool: WorkPool, n: int) -> None:
    items = payload.many_like(payload.new_item(None, delay=3600.0, group="gpu"), range(n))
    ids = pool.push_items(items)
    assert pool.push_items(items) == ids  # the reply was lost
    stored = pool.items(limit=1000)
    assert [item.id for item in stored] == ids
    assert [item.data for item in stored] == list(range(n))
    assert {item.group for item in stored} == {"gpu"}
    counts = pool.counts()
    assert (counts.pending, counts.delayed, pool.stats().arrivals) == (n, n, n)


def test_items_of_one_push_may_differ(pool: WorkPool) -> None:
    options: list[dict[str, Any]] = [{"priority": 3}, {"delay": 60.0}, {"backlog": True}, {}, {}]
    ids = pool.push_items([payload.new_item(n, **one) for n, one in enumerate(options)])
    assert [item.id for item in pool.items()] == ids
    assert [item.priority for item in pool.items()] == [3, 0, 0, 0, 0]
    counts = pool.counts()
    assert (counts.pending, counts.delayed, counts.backlog) == (4, 1, 1)
    assert pool.stats().arrivals == 5


def test_push_many_of_nothing_is_nothing(pool: WorkPool) -> None:
    assert pool.push_many([]) == []
    assert pool.size() == 0


def test_push_takes_all_items_or_none(pool: WorkPool) -> None:
    with pytest.raises(InvalidInput):
        pool.push_many([1, 2, float("nan")])
    assert pool.size() == 0


def test_repeated_push_with_the_same_ids_is_the_same_push(pool: WorkPool) -> None:
    items = [payload.new_item(n) for n in range(3)]
    ids = pool.push_items(items)
    assert ids == [item.id for item in items]
    assert pool.push_items(items) == ids
    assert pool.size() == 3
    assert pool.stats().arrivals == 3


def test_repeated_push_leaves_a_claimed_item_alone(pool: WorkPool, worker: object) -> None:
    item = payload.new_item("once")
    pool.push_items([item])
    claimed = pool.claim("w1")
    assert claimed is not None
    assert pool.push_items([item]) == [item.id]
    assert pool.get(item.id) == claimed


def test_repeated_push_with_a_key_is_the_same_push(pool: WorkPool) -> None:
    items = [payload.new_item(n, key=f"k{n}") for n in range(3)]
    ids = pool.push_items(items)
    assert pool.push_items(items) == ids
    assert pool.size() == 3


def test_known_key_with_the_same_payload_answers_the_known_id(pool: WorkPool) -> None:
    first = pool.push({"a": 1}, key="k")
    assert pool.push({"a": 1}, key="k", priority=9, max_retries=7) == first
    assert pool.size() == 1
    assert pool.get(first).priority == 0


def test_key_order_in_the_payload_does_not_matter(pool: WorkPool) -> None:
    first = pool.push({"a": 1, "b": {"c": 2, "d": [3]}}, key="k")
    assert pool.push({"b": {"d": [3], "c": 2}, "a": 1}, key="k") == first


def test_white_space_in_the_payload_does_not_matter(pool: WorkPool) -> None:
    first = pool.push_items([payload.new_item({"a": [1, 2]}, key="k")])
    spaced = payload.new_item(None, key="k").replace(data=' {"a" : [1,\n2]} ')
    assert pool.push_items([spaced]) == first


@pytest.mark.parametrize(("one", "other"), [(1, 2), (1, True), (0, False), ([1], [1, 1]), ("1", 1)])
def test_known_key_with_another_payload_is_a_conflict(
    pool: WorkPool, one: object, other: object
) -> None:
    first = pool.push(one, key="k")
    with pytest.raises(KeyConflict):
        pool.push(other, key="k")
    assert pool.size() == 1
    assert pool.get(first).data == one


def test_conflict_stores_nothing_of_the_call(pool: WorkPool) -> None:
    pool.push("there", key="k")
    with pytest.raises(KeyConflict):
        pool.push_items([payload.new_item("new"), payload.new_item("other", key="k")])
    assert [item.data for item in pool.items()] == ["there"]
    assert pool.stats().arrivals == 1


def test_same_key_twice_in_one_call_is_one_item(pool: WorkPool) -> None:
    one = payload.new_item({"a": 1, "b": 2}, key="k")
    two = payload.new_item({"b": 2, "a": 1}, key="k")
    three = payload.new_item("other")
    assert pool.push_items([one, two, three]) == [one.id, one.id, three.id]
    assert pool.size() == 2


def test_same_key_with_two_payloads_in_one_call_is_a_conflict(pool: WorkPool) -> None:
    with pytest.raises(KeyConflict):
        pool.push_items([payload.new_item(1, key="k"), payload.new_item(2, key="k")])
    assert pool.size() == 0


def test_key_belongs_to_its_pool(store: Store) -> None:
    one = store.pool("a").push(1, key="k")
    other = store.pool("b").push(2, key="k")
    assert one != other
    assert store.get(other).data == 2


@pytest.mark.parametrize("end", ["done", "poisoned", "cancelled"])
def test_key_is_known_as_long_as_its_item_is_kept(
    pool: WorkPool, worker: object, advance: Callable[[float], None], end: str
) -> None:
    pool.configure(keep_done_seconds=60, keep_poisoned_seconds=60, keep_cancelled_seconds=60)
    first = pool.push("once", key="k")
    if end == "cancelled":
        pool.cancel(first)
    else:
        claimed = pool.claim("w1")
        assert claimed is not None
        _ = pool.complete(claimed) if end == "done" else pool.fail(claimed, "no", poison=True)
    assert pool.get(first).status == end
    assert pool.push("once", key="k") == first
    with pytest.raises(KeyConflict):
        pool.push("twice", key="k")
    advance(61)
    assert pool.purge() == 1
    again = pool.push("twice", key="k")
    assert again != first
    with pytest.raises(UnknownItem):
        pool.get(first)


def test_backlog_is_parked(pool: WorkPool, worker: object) -> None:
    item_id = pool.push("later", backlog=True)
    assert pool.get(item_id).status == "backlog"
    assert (pool.counts().backlog, pool.size()) == (1, 0)
    assert pool.claim("w1") is None


def test_delayed_item_counts_as_pending_but_is_not_ready(
    pool: WorkPool, advance: Callable[[float], None]
) -> None:
    item_id = pool.push("later", delay=30)
    pool.push("now")
    counts = pool.counts()
    assert (counts.pending, counts.delayed, counts.ready) == (2, 1, 1)
    run_at = pool.get(item_id).run_at
    assert run_at is not None
    assert run_at > pool.observe().now
    advance(31)
    counts = pool.counts()
    assert (counts.pending, counts.delayed, counts.ready) == (2, 0, 2)
