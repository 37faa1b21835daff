"""Items that name a task: parked while no worker knows it, and what else an exchange says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprat.core import model, payload
from sprat.core.errors import KeyConflict
from sprat.core.model import Settlement, WorkerRecord, WorkItem
from sprat.store.pool import WorkPool
from sprat.store.store import Store

UNKNOWN = "no worker knows the task shop:resize"


def must_claim(pool: WorkPool, worker: str = "w1") -> WorkItem:
    item = pool.claim(worker)
    assert item is not None
    return item


def park(pool: WorkPool, item: WorkItem, delay: float = 60.0) -> bool:
    settlement = Settlement(
        item_id=item.id, token=item.token, outcome=model.PARK, error=UNKNOWN, delay=delay
    )
    return pool.settle_many([settlement])[0]


@pytest.fixture
def parked(pool: WorkPool, worker: WorkerRecord) -> WorkItem:
    pool.push("photo", task="shop:resize")
    item = must_claim(pool)
    assert park(pool, item)
    return item


# -- the task of an item ----------------------------------------------------------------------


def test_item_keeps_its_task(pool: WorkPool, worker: WorkerRecord) -> None:
    item_id = pool.push("photo", task="shop:resize")
    assert pool.get(item_id).task == "shop:resize"
    assert [item.task for item in pool.items()] == ["shop:resize"]
    assert must_claim(pool).task == "shop:resize"


def test_item_without_a_task_has_none(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("photo")
    assert must_claim(pool).task is None


@pytest.mark.parametrize("options", [{}, {"group": "gpu"}, {"tenant": "a"}, {"delay": 5}])
def test_items_pushed_together_keep_their_own_tasks(
    pool: WorkPool,
    enrol: Callable[..., WorkerRecord],
    advance: Callable[[float], None],
    options: dict[str, object],
) -> None:
    enrol("w1", capabilities=["gpu"])
    tasks = ["shop:resize", None, "shop:crop"]
    pool.push_items([payload.new_item(task, task=task, **options) for task in tasks])  # type: ignore[arg-type]
    advance(10)
    claimed = pool.claim_many("w1", 3)
    assert {item.task: item.data for item in claimed} == {task: task for task in tasks}


def test_same_key_for_another_task_is_a_conflict(pool: WorkPool) -> None:
    item_id = pool.push("photo", key="k", task="shop:resize")
    assert pool.push("photo", key="k", task="shop:resize") == item_id
    for task in ("shop:crop", None):
        with pytest.raises(KeyConflict):
            pool.push("photo", key="k", task=task)
    assert pool.counts().total == 1


def test_same_key_for_another_task_in_one_push_is_a_conflict(pool: WorkPool) -> None:
    items = [payload.new_item("photo", key="k", task=task) for task in ("a:b", "a:c")]
    with pytest.raises(KeyConflict):
        pool.push_items(items)
    assert pool.counts().total == 0


def test_requeued_item_keeps_its_task(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("photo", task="shop:resize")
    item = must_claim(pool)
    pool.fail(item, "broken", poison=True)
    pool.requeue(item.id)
    assert must_claim(pool).task == "shop:resize"


# -- parking -----------------------------------------------------------------------------------


def test_parked_item_waits_uncharged_with_its_hold(pool: WorkPool, parked: WorkItem) -> None:
    item = pool.get(parked)
    assert (item.status, item.attempts, item.given_back) == ("pending", 0, 1)
    assert (item.hold, item.error, item.claimed_by) == (UNKNOWN, None, None)
    assert item.run_at is not None
    assert pool.counts().delayed == 1
    assert pool.claim("w1") is None


def test_parking_leaves_the_error(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("photo", task="shop:resize")
    item = must_claim(pool)
    pool.fail(item, "first try")
    park(pool, must_claim(pool))
    item = pool.get(item)
    assert (item.error, item.hold, item.attempts) == ("first try", UNKNOWN, 1)


def test_parking_is_neither_a_run_nor_a_failure(pool: WorkPool, parked: WorkItem) -> None:
    stats = pool.stats()
    assert (stats.starts, stats.finished, stats.failed, stats.run_mean) == (1, 0, 0, 0.0)


def test_parking_again_after_a_lost_reply_is_success(pool: WorkPool, parked: WorkItem) -> None:
    assert park(pool, parked)
    assert pool.get(parked).given_back == 1


def test_parking_never_charges(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("photo", task="shop:resize", max_retries=1)
    for _ in range(5):
        assert park(pool, must_claim(pool), delay=0.0)
    item = must_claim(pool)
    assert (item.attempts, item.given_back, item.transients) == (1, 5, 0)


def test_late_parking_is_rejected(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("photo", task="shop:resize")
    item = must_claim(pool)
    pool.release_by_worker("w1")
    assert not park(pool, item)
    assert pool.get(item).hold is None


@pytest.mark.parametrize("n", [1, 3])
def test_claim_ends_the_hold(
    pool: WorkPool, parked: WorkItem, advance: Callable[[float], None], n: int
) -> None:
    advance(61)
    assert pool.observe().parked == {"shop:resize": 1}  # still held: no worker knew the task
    (item,) = pool.claim_many("w1", n)
    assert item.hold is None
    assert pool.get(parked).hold is None
    assert pool.observe().parked == {}


def test_cancel_ends_the_hold(pool: WorkPool, parked: WorkItem) -> None:
    pool.cancel(parked.id)
    assert pool.get(parked).hold is None
    assert pool.observe().parked == {}
    pool.requeue(parked.id)
    assert pool.get(parked).hold is None


def test_worker_that_knows_the_task_frees_the_item(
    pool: WorkPool, parked: WorkItem, enrol: Callable[..., WorkerRecord]
) -> None:
    enrol("w2", pool_id="papers", tasks=["shop:crop", "shop:resize"])
    item = pool.get(parked)
    assert (item.hold, item.run_at, item.status) == (None, None, "pending")
    counts = pool.counts()
    assert (counts.pending, counts.delayed) == (1, 0)
    assert pool.observe().parked == {}
    assert must_claim(pool, "w2").id == parked.id


def test_due_item_is_freed_too(
    pool: WorkPool,
    parked: WorkItem,
    enrol: Callable[..., WorkerRecord],
    advance: Callable[[float], None],
) -> None:
    advance(61)
    enrol("w2", pool_id="papers", tasks=["shop:resize"])
    assert pool.observe().parked == {}
    assert pool.counts().ready == 1
    assert must_claim(pool, "w2").id == parked.id


@pytest.mark.parametrize(
    "about",
    [
        {"pool_id": "papers"},
        {"pool_id": "papers", "tasks": ["shop:crop"]},
        {"pool_id": "others", "tasks": ["shop:resize"]},
        {"tasks": ["shop:resize"]},
    ],
)
def test_other_workers_leave_it_parked(
    pool: WorkPool,
    parked: WorkItem,
    enrol: Callable[..., WorkerRecord],
    about: dict[str, object],
) -> None:
    enrol("w2", **about)
    assert pool.get(parked).hold == UNKNOWN
    assert pool.counts().delayed == 1
    assert pool.observe().parked == {"shop:resize": 1}


def test_delayed_item_that_is_not_parked_stays_delayed(
    pool: WorkPool, enrol: Callable[..., WorkerRecord]
) -> None:
    pool.push("photo", task="shop:resize", delay=60)
    enrol("w2", pool_id="papers", tasks=["shop:resize"])
    assert pool.counts().delayed == 1


def test_parked_items_are_counted_per_task_and_group(
    pool: WorkPool, enrol: Callable[..., WorkerRecord]
) -> None:
    enrol("w1", capabilities=["gpu"])
    pool.push_many([1, 2], task="shop:resize")
    pool.push(3, task="shop:crop", group="gpu")
    pool.push(4)
    for item in pool.claim_many("w1", 4):
        assert park(pool, item)
    pool.push(5, task="shop:resize")
    assert pool.observe().parked == {"shop:resize": 2, "shop:crop": 1, "": 1}
    assert pool.observe("gpu").parked == {"shop:crop": 1}
    assert pool.observe(model.NO_GROUP).parked == {"shop:resize": 2, "": 1}


# -- transient failures --------------------------------------------------------------------------


def throttled(pool: WorkPool, times: int) -> WorkItem:
    """Claims and fails an item for a moment, over and over; the item as it is then."""
    item = must_claim(pool)
    for _ in range(times):
        failure = pool.failure(item, "throttled", transient=True)
        answer = pool.exchange("w1", settlements=[failure], claim=1)
        assert answer.settled == (True,)
        if not answer.items:
            return pool.get(item)
        (item,) = answer.items
    return item


def test_transient_failures_are_counted(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("work", max_retries=2)
    item = throttled(pool, 3)
    assert (item.attempts, item.transients, item.given_back) == (1, 3, 3)


def test_transient_failures_past_the_bound_are_charged(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push("work", max_retries=2)
    item = throttled(pool, model.MAX_TRANSIENT)
    assert (item.attempts, item.transients) == (1, model.MAX_TRANSIENT)
    pool.fail(item, "throttled", transient=True)
    item = pool.get(item)
    assert (item.status, item.attempts, item.transients) == ("pending", 1, model.MAX_TRANSIENT)
    pool.fail(must_claim(pool), "throttled", transient=True)
    item = pool.get(item)
    assert (item.status, item.attempts, item.error) == ("poisoned", 2, "throttled")


def test_bound_is_the_pools_setting(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.configure(max_transient=1)
    pool.push("work", max_retries=1)
    assert throttled(pool, 1).status == "claimed"
    pool.configure(max_transient=0)
    pool.push("more", max_retries=1)
    assert throttled(pool, 1).status == "poisoned"


def test_no_bound_gives_every_attempt_back(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.configure(max_transient=None)
    pool.push("work", max_retries=1)
    item = throttled(pool, 3 * model.MAX_TRANSIENT)
    assert (item.status, item.transients) == ("claimed", 3 * model.MAX_TRANSIENT)


def test_handing_back_is_not_transient(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.configure(max_transient=0)
    pool.push("work", max_retries=1)
    assert pool.hand_back(must_claim(pool))
    item = must_claim(pool)
    assert (item.attempts, item.transients, item.given_back) == (1, 0, 1)


def test_requeued_item_may_fail_for_a_moment_again(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("work", max_retries=1)
    item = throttled(pool, model.MAX_TRANSIENT + 1)
    assert item.status == "poisoned"
    pool.requeue(item.id)
    assert pool.get(item).transients == 0
    assert throttled(pool, 1).status == "claimed"


def test_completed_item_keeps_its_transients(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("work")
    item = throttled(pool, 2)
    pool.complete(item)
    assert pool.get(item).transients == 2


# -- the version of the settings -----------------------------------------------------------------


@pytest.mark.parametrize("group", [None, "gpu"])
@pytest.mark.parametrize("n", [1, 3])
def test_exchange_tells_the_version_of_the_settings(
    pool: WorkPool, enrol: Callable[..., WorkerRecord], n: int, group: str | None
) -> None:
    enrol("w1", capabilities=["gpu"])
    assert pool.exchange("w1", claim=n).version == 0  # there is no such pool yet
    pool.push("work", group=group)
    assert pool.exchange("w1", claim=n).version == 0
    pool.configure(max_workers=3)
    assert pool.exchange("w1", claim=n).version == pool.state().version == 1
    pool.push("more", group=group)
    answer = pool.exchange("w1", claim=n)
    assert (len(answer.items), answer.version) == (1, 1)
    pool.configure(max_workers=4)
    pool.push("most", group=group)
    done = pool.completion(answer.items[0])
    answer = pool.exchange("w1", settlements=[done], claim=n)
    assert (len(answer.items), answer.version) == (1, 2)


def test_version_is_told_while_nothing_may_be_claimed(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.configure(max_workers=3)
    pool.push("work")
    pool.pause()
    assert pool.exchange("w1", claim=1).version == 1


def test_exchange_that_claims_nothing_tells_no_version(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push("work")
    item = must_claim(pool)
    assert pool.exchange("w1", settlements=[pool.completion(item)], claim=0).version is None


# -- the reason of a pause -----------------------------------------------------------------------


def why(pool: WorkPool) -> str | None:
    seen, state = pool.observe(), pool.state()
    assert (seen.paused, seen.pause_reason) == (state.paused, state.pause_reason)
    assert (seen.paused_seconds is None) == (state.paused_seconds is None)
    return state.pause_reason


def test_pause_keeps_its_reason_until_resumed(pool: WorkPool) -> None:
    assert why(pool) is None
    pool.pause(reason="maintenance")
    assert why(pool) == "maintenance"
    pool.pause(60, reason="a little longer")
    assert why(pool) == "a little longer"
    assert 55 < (pool.observe().paused_seconds or 0) <= 60
    pool.pause()
    assert why(pool) is None
    pool.pause(reason="again")
    pool.resume()
    assert (pool.state().paused, why(pool)) == (False, None)


def test_pause_that_ended_has_no_reason(pool: WorkPool, advance: Callable[[float], None]) -> None:
    pool.pause(60, reason="maintenance")
    advance(61)
    assert (pool.state().paused, why(pool)) == (False, None)


def test_longer_pause_keeps_its_reason(pool: WorkPool, advance: Callable[[float], None]) -> None:
    pool.hold_off(100, reason="throttled by the shop")
    pool.hold_off(10, reason="throttled by the bank")
    assert why(pool) == "throttled by the shop"
    pool.hold_off(1000, reason="throttled by the bank")
    assert why(pool) == "throttled by the bank"
    advance(1001)
    assert why(pool) is None
    pool.hold_off(5, reason="throttled again")
    assert why(pool) == "throttled again"
    pool.pause(reason="maintenance")
    pool.hold_off(10_000, reason="throttled")
    assert why(pool) == "maintenance"


def test_reason_of_a_pool_that_was_never_paused(store: Store) -> None:
    assert why(store.pool("unknown")) is None
