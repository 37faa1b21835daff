"""Settle: every outcome, and every way in which a settle can come too late."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprat.core import model, retry_rules
from sprat.core.errors import NotClaimedHere, UnknownItem, UnknownWorker
from sprat.core.model import Settlement, WorkerRecord, WorkItem
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Advance = Callable[[float], None]
Enrol = Callable[..., WorkerRecord]

SETTLES: dict[str, Callable[[WorkPool, WorkItem | str], bool]] = {
    "complete": lambda pool, item: pool.complete(item, {"late": True}),
    "fail": lambda pool, item: pool.fail(item, "late"),
    "transient": lambda pool, item: pool.fail(item, "late", transient=True),
    "poison": lambda pool, item: pool.fail(item, "late", poison=True),
    "hand_back": lambda pool, item: pool.hand_back(item),
}
every_outcome = pytest.mark.parametrize("outcome", SETTLES)


def must_claim(pool: WorkPool, worker: str | WorkerRecord = "w1") -> WorkItem:
    item = pool.claim(worker)
    assert item is not None
    return item


@pytest.fixture
def claimed(pool: WorkPool, worker: WorkerRecord) -> WorkItem:
    pool.push({"n": 1}, max_retries=3)
    return must_claim(pool)


# -- outcomes -----------------------------------------------------------------------------------


def test_complete_keeps_the_result(pool: WorkPool, claimed: WorkItem) -> None:
    assert pool.complete(claimed, {"answer": [42, None]})
    item = pool.get(claimed)
    assert (item.status, item.result, item.error) == ("done", {"answer": [42, None]}, None)
    assert item.attempts == 1
    assert item.finished_at is not None


def test_complete_without_a_result_is_done(pool: WorkPool, claimed: WorkItem) -> None:
    assert pool.complete(claimed)
    assert (pool.get(claimed).status, pool.get(claimed).result) == ("done", None)


@pytest.mark.parametrize("result", [0, False, "", [], {}])
def test_empty_results_are_results(pool: WorkPool, claimed: WorkItem, result: object) -> None:
    assert pool.complete(claimed, result)
    found = pool.get(claimed).result
    assert found == result
    assert type(found) is type(result)


def test_complete_clears_the_error_of_an_earlier_attempt(pool: WorkPool, claimed: WorkItem) -> None:
    pool.fail(claimed, "first try")
    assert pool.get(claimed).error == "first try"
    pool.complete(must_claim(pool))
    assert pool.get(claimed).error is None


def test_fail_keeps_the_error_and_tries_again(pool: WorkPool, claimed: WorkItem) -> None:
    assert pool.fail(claimed, ValueError("bad page"))
    item = pool.get(claimed)
    assert (item.status, item.error, item.attempts) == ("pending", "bad page", 1)
    assert item.finished_at is None
    assert must_claim(pool).attempts == 2


def test_fail_with_a_delay_is_pending_after_it(
    pool: WorkPool, claimed: WorkItem, advance: Advance
) -> None:
    pool.fail(claimed, "wait", delay=60)
    assert pool.counts().delayed == 1
    advance(50)
    assert pool.claim("w1") is None
    advance(11)
    assert must_claim(pool).id == claimed.id


@pytest.mark.parametrize("max_retries", [1, 2, 5])
def test_item_is_poisoned_after_exactly_max_retries_failures(
    pool: WorkPool, worker: WorkerRecord, max_retries: int
) -> None:
    item_id = pool.push("bad", max_retries=max_retries)
    for attempt in range(1, max_retries + 1):
        assert pool.get(item_id).status == "pending"
        item = must_claim(pool)
        assert item.attempts == attempt
        pool.fail(item, f"failure {attempt}")
    item = pool.get(item_id)
    assert (item.status, item.attempts) == ("poisoned", max_retries)
    assert item.error == f"failure {max_retries}"
    assert item.finished_at is not None
    assert pool.claim("w1") is None


def test_last_failure_with_a_delay_is_poisoned_at_once(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    item_id = pool.push("bad", max_retries=1)
    pool.fail(must_claim(pool), "no", delay=60)
    assert pool.get(item_id).status == "poisoned"
    assert pool.counts().delayed == 0


def test_transient_failure_gives_the_attempt_back(pool: WorkPool, claimed: WorkItem) -> None:
    for n in range(10):
        item = claimed if n == 0 else must_claim(pool)
        assert item.attempts == 1
        assert pool.fail(item, f"throttled {n}", transient=True)
        found = pool.get(item)
        assert (found.status, found.attempts, found.error) == ("pending", 0, f"throttled {n}")


def test_transient_failure_waits_for_its_delay(
    pool: WorkPool, claimed: WorkItem, advance: Advance
) -> None:
    pool.fail(claimed, "throttled", transient=True, delay=60)
    assert pool.claim("w1") is None
    advance(61)
    assert must_claim(pool).attempts == 1


def test_transient_failure_on_the_last_attempt_is_not_poison(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    item_id = pool.push("work", max_retries=1)
    pool.fail(must_claim(pool), "throttled", transient=True)
    assert pool.get(item_id).status == "pending"


def test_hand_back_gives_the_attempt_back_and_leaves_the_error(
    pool: WorkPool, claimed: WorkItem
) -> None:
    pool.fail(claimed, "first try")
    assert pool.hand_back(must_claim(pool))
    item = pool.get(claimed)
    assert (item.status, item.attempts, item.error) == ("pending", 1, "first try")


def test_poison_allows_no_further_attempt(pool: WorkPool, claimed: WorkItem) -> None:
    assert pool.fail(claimed, "no such paper", poison=True)
    item = pool.get(claimed)
    assert (item.status, item.error, item.attempts) == ("poisoned", "no such paper", 1)
    assert item.finished_at is not None


def test_attempts_are_given_back_a_thousand_times_at_most(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    item_id = pool.push("handed back", max_retries=2)
    item = must_claim(pool)
    for _ in range(retry_rules.GIVE_BACKS):
        back = model.Settlement(item_id=item.id, token=item.token, outcome=model.HAND_BACK)
        answer = pool.exchange("w1", settlements=[back], claim=1)
        assert answer.settled == (True,)
        item = answer.items[0]
    assert item.attempts == 1
    pool.hand_back(item)
    assert pool.get(item_id).attempts == 1
    pool.hand_back(must_claim(pool))
    assert (pool.get(item_id).status, pool.get(item_id).attempts) == ("poisoned", 2)


@every_outcome
def test_settled_item_shows_no_token(pool: WorkPool, claimed: WorkItem, outcome: str) -> None:
    assert SETTLES[outcome](pool, claimed)
    assert pool.get(claimed).token is None


@pytest.mark.parametrize("outcome", ["fail", "transient", "hand_back"])
def test_pending_item_shows_no_worker(pool: WorkPool, claimed: WorkItem, outcome: str) -> None:
    assert SETTLES[outcome](pool, claimed)
    assert pool.get(claimed).claimed_by is None


@pytest.mark.parametrize("outcome", ["complete", "poison"])
def test_finished_item_shows_the_worker_that_settled_it(
    pool: WorkPool, claimed: WorkItem, outcome: str
) -> None:
    assert SETTLES[outcome](pool, claimed)
    assert pool.get(claimed).claimed_by == "w1"


# -- claimed ahead ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "attempts"),
    [("complete", 1), ("fail", 1), ("poison", 1), ("transient", 0), ("hand_back", 0)],
)
@pytest.mark.parametrize("announced", [False, True])
def test_settling_an_item_claimed_ahead_counts_its_start(
    pool: WorkPool, worker: WorkerRecord, outcome: str, attempts: int, announced: bool
) -> None:
    pool.push_many(["a", "b"])
    ahead = pool.claim_many("w1", 2, announced=announced)[1]
    assert SETTLES[outcome](pool, ahead)
    assert pool.get(ahead).attempts == attempts


def test_items_claimed_ahead_may_be_settled_in_any_order(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push_many(range(4))
    batch = pool.claim_many("w1", 4)
    done = [pool.completion(item, item.data) for item in reversed(batch)]
    assert pool.settle_many(done) == (True,) * 4
    assert [(i.status, i.result, i.attempts) for i in pool.items()] == [
        ("done", n, 1) for n in range(4)
    ]


# -- too late -----------------------------------------------------------------------------------


@every_outcome
def test_late_result_for_an_item_that_is_pending_again_is_dropped(
    pool: WorkPool, claimed: WorkItem, outcome: str
) -> None:
    pool.release_by_worker("w1")
    before = pool.get(claimed)
    assert before.status == "pending"
    assert not SETTLES[outcome](pool, claimed)
    assert pool.get(claimed) == before


@every_outcome
def test_late_result_for_an_item_claimed_by_another_is_dropped(
    pool: WorkPool, claimed: WorkItem, enrol: Enrol, outcome: str
) -> None:
    enrol("w2")
    pool.release_by_worker("w1")
    holder = must_claim(pool, "w2")
    assert not SETTLES[outcome](pool, claimed)
    assert pool.get(claimed) == holder
    assert pool.complete(holder, "the right one")
    assert pool.get(claimed).result == "the right one"


@every_outcome
def test_late_result_for_an_item_done_by_another_is_dropped(
    pool: WorkPool, claimed: WorkItem, enrol: Enrol, outcome: str
) -> None:
    enrol("w2")
    pool.release_by_worker("w1")
    pool.complete(must_claim(pool, "w2"), "the right one")
    before = pool.get(claimed)
    assert not SETTLES[outcome](pool, claimed)
    assert pool.get(claimed) == before


@every_outcome
def test_late_result_for_an_item_poisoned_meanwhile_is_dropped(
    pool: WorkPool, worker: WorkerRecord, outcome: str
) -> None:
    pool.push("work", max_retries=1)
    claimed = must_claim(pool)
    pool.release_by_worker("w1")
    before = pool.get(claimed)
    assert before.status == "poisoned"
    assert not SETTLES[outcome](pool, claimed)
    assert pool.get(claimed) == before


@every_outcome
def test_late_result_for_a_cancelled_item_is_dropped(
    pool: WorkPool, claimed: WorkItem, outcome: str
) -> None:
    pool.cancel(claimed.id)
    before = pool.get(claimed)
    assert not SETTLES[outcome](pool, claimed)
    assert pool.get(claimed) == before


@every_outcome
def test_late_result_for_a_requeued_item_is_dropped(
    pool: WorkPool, claimed: WorkItem, outcome: str
) -> None:
    pool.cancel(claimed.id)
    pool.requeue(claimed.id)
    before = pool.get(claimed)
    assert not SETTLES[outcome](pool, claimed)
    assert pool.get(claimed) == before


@every_outcome
def test_result_of_an_old_incarnation_of_the_same_worker_is_dropped(
    pool: WorkPool, claimed: WorkItem, enrol: Enrol, outcome: str
) -> None:
    new = enrol("w1")
    assert new.incarnation == 2
    again = must_claim(pool, new)
    assert (again.id, again.claimed_by) == (claimed.id, claimed.claimed_by)
    assert not SETTLES[outcome](pool, claimed)
    assert pool.get(claimed) == again
    assert pool.complete(again, "the new one")


@every_outcome
def test_result_of_a_reaped_worker_is_dropped(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance, outcome: str
) -> None:
    enrol("w1", lease_seconds=10)
    pool.push("work")
    claimed = must_claim(pool)
    advance(11)
    assert store.workers.reap().released == 1
    before = pool.get(claimed)
    assert not SETTLES[outcome](pool, claimed)
    assert pool.get(claimed) == before


@every_outcome
def test_unclaimed_item_cannot_be_settled(pool: WorkPool, outcome: str) -> None:
    item = pool.get(pool.push("work"))
    assert item.token is None
    assert not SETTLES[outcome](pool, item)
    with pytest.raises(NotClaimedHere):
        SETTLES[outcome](pool, item.id)
    assert pool.get(item) == item


@every_outcome
def test_item_that_was_never_settled_is_not_repeated_without_a_token(
    pool: WorkPool, claimed: WorkItem, outcome: str
) -> None:
    pool.release_by_worker("w1")
    before = pool.get(claimed)
    assert not SETTLES[outcome](pool, before)
    assert pool.get(claimed) == before


# -- the reply was lost -------------------------------------------------------------------------


@every_outcome
def test_repeated_settle_is_success_again(pool: WorkPool, claimed: WorkItem, outcome: str) -> None:
    assert SETTLES[outcome](pool, claimed)
    before = pool.get(claimed)
    assert SETTLES[outcome](pool, claimed)
    assert SETTLES[outcome](pool, claimed)
    assert pool.get(claimed) == before


@pytest.mark.parametrize("outcome", ["fail", "transient", "hand_back"])
def test_repeated_settle_is_success_while_another_holds_the_item(
    pool: WorkPool, claimed: WorkItem, enrol: Enrol, outcome: str
) -> None:
    enrol("w2")
    assert SETTLES[outcome](pool, claimed)
    holder = must_claim(pool, "w2")
    assert SETTLES[outcome](pool, claimed)
    assert pool.get(claimed) == holder


def test_repetition_is_known_only_until_the_next_settle(
    pool: WorkPool, claimed: WorkItem, enrol: Enrol
) -> None:
    enrol("w2")
    pool.fail(claimed, "first")
    pool.complete(must_claim(pool, "w2"), "second")
    before = pool.get(claimed)
    assert not pool.fail(claimed, "first")
    assert pool.get(claimed) == before


def test_only_the_last_of_two_equal_settles_is_a_repetition(
    pool: WorkPool, claimed: WorkItem, enrol: Enrol
) -> None:
    enrol("w2")
    pool.fail(claimed, "no")
    second = must_claim(pool, "w2")
    pool.fail(second, "no")
    before = pool.get(claimed)
    assert pool.fail(second, "no")
    assert not pool.fail(claimed, "no")
    assert pool.get(claimed) == before


def test_release_is_no_settle(pool: WorkPool, claimed: WorkItem, enrol: Enrol) -> None:
    enrol("w2")
    pool.fail(claimed, "first")
    must_claim(pool, "w2")
    pool.release_by_worker("w2")
    assert pool.fail(claimed, "first")  # still the claim that was settled last


@pytest.mark.parametrize("first", SETTLES)
@pytest.mark.parametrize("second", SETTLES)
def test_another_outcome_is_no_repetition(
    pool: WorkPool, claimed: WorkItem, first: str, second: str
) -> None:
    assert SETTLES[first](pool, claimed)
    before = pool.get(claimed)
    assert SETTLES[second](pool, claimed) is (first == second)
    assert pool.get(claimed) == before


def test_another_result_is_no_repetition(pool: WorkPool, claimed: WorkItem) -> None:
    assert pool.complete(claimed, {"a": 1})
    assert not pool.complete(claimed, {"a": 2})
    assert not pool.complete(claimed)
    assert pool.complete(claimed, {"a": 1})
    assert pool.get(claimed).result == {"a": 1}


def test_repetition_is_counted_once(pool: WorkPool, claimed: WorkItem) -> None:
    for _ in range(3):
        assert pool.complete(claimed, 1)
    assert pool.stats().finished == 1
    assert pool.counts().done == 1


def test_exchange_repeated_after_a_lost_reply_settles_once_and_claims_the_next(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push_many(["a", "b", "c"])
    first = must_claim(pool)
    done = [pool.completion(first, "A")]
    lost = pool.exchange("w1", settlements=done)
    again = pool.exchange("w1", settlements=done)
    assert (lost.settled, again.settled) == ((True,), (True,))
    assert [lost.items[0].data, again.items[0].data] == ["b", "c"]


# -- unknown ids --------------------------------------------------------------------------------


@every_outcome
def test_unknown_item_is_an_error(pool: WorkPool, outcome: str) -> None:
    with pytest.raises(UnknownItem) as caught:
        SETTLES[outcome](pool, "nothing")
    assert isinstance(caught.value, KeyError)
    assert "nothing" in str(caught.value)


def test_unknown_item_undoes_the_whole_call(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push_many(["a", "b", "c"])
    first, second = pool.claim_many("w1", 2)
    stranger = Settlement(item_id="nothing", token="x", outcome=model.COMPLETE)
    settlements = [pool.completion(first, 1), pool.failure(second, "no"), stranger]
    before = pool.items()
    with pytest.raises(UnknownItem):
        pool.settle_many(settlements)
    with pytest.raises(UnknownItem):
        pool.exchange("w1", settlements=settlements, claim=1)
    assert pool.items() == before
    assert pool.stats().finished == 0
    assert pool.settle_many(settlements[:2]) == (True, True)


def test_unknown_worker_undoes_the_whole_call(pool: WorkPool, claimed: WorkItem) -> None:
    with pytest.raises(UnknownWorker):
        pool.exchange("nobody", settlements=[pool.completion(claimed, 1)], claim=1)
    assert pool.get(claimed) == claimed


def test_stale_settlements_do_not_stop_the_others(pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1"), enrol("w2")
    pool.push_many(["a", "b"])
    stale = must_claim(pool, "w2")
    pool.release_by_worker("w2")
    mine = must_claim(pool)
    other = must_claim(pool)
    assert {mine.id, other.id} >= {stale.id}
    answer = pool.settle_many(
        [pool.completion(stale, "late"), pool.completion(mine, 1), pool.completion(other, 2)]
    )
    assert answer == (False, True, True)
    assert [item.result for item in pool.items()] == [1, 2]


def test_settle_needs_no_live_worker(store: Store, pool: WorkPool, claimed: WorkItem) -> None:
    store.workers.update_status("w1", "terminating")
    assert pool.complete(claimed, "finished while leaving")
    assert pool.get(claimed).result == "finished while leaving"


def test_worker_that_has_to_leave_settles_and_gets_nothing_new(
    store: Store, pool: WorkPool, claimed: WorkItem
) -> None:
    pool.push("more")
    store.workers.update_status("w1", "terminating")
    answer = pool.exchange("w1", settlements=[pool.completion(claimed, 1)], claim=1)
    assert (answer.settled, answer.items) == ((True,), ())
