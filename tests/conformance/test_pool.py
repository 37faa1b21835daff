"""Pools: settings, pause, cancel, requeue, checkpoints, lists and retention."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from worlds import check_counts

from sprat.core.errors import InvalidInput, UnknownItem
from sprat.core.model import Counts, PoolSettings, WorkerRecord, WorkItem
from sprat.core.payload import MAX_IDS
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Advance = Callable[[float], None]
Enrol = Callable[..., WorkerRecord]


def must_claim(pool: WorkPool, worker: str = "w1") -> WorkItem:
    item = pool.claim(worker)
    assert item is not None
    return item


def make_one_of_each(pool: WorkPool) -> dict[str, str]:
    """An item in each state, by state. Needs worker w1."""
    ids: dict[str, str] = {}
    for status in ("done", "poisoned", "cancelled", "claimed"):
        ids[status] = pool.push(status)
        item = must_claim(pool)
        if status == "done":
            pool.complete(item, "result")
        elif status == "poisoned":
            pool.fail(item, "error", poison=True)
        elif status == "cancelled":
            pool.cancel(item.id)
    ids["pending"] = pool.push("pending")
    ids["delayed"] = pool.push("delayed", delay=500)
    ids["backlog"] = pool.push("backlog", backlog=True)
    return ids


# -- looking ------------------------------------------------------------------------------------


def test_pools_are_named_once_they_have_an_item_or_a_setting(store: Store) -> None:
    assert store.pools() == []
    store.pool("never").counts()
    store.pool("zebra").push(1)
    store.pool("ape").configure(tenant_limit=1)
    assert store.pools() == ["ape", "zebra"]


def test_counts_are_by_state(pool: WorkPool, worker: WorkerRecord) -> None:
    make_one_of_each(pool)
    counts = pool.counts()
    assert counts == Counts(
        pending=2, delayed=1, backlog=1, claimed=1, done=1, poisoned=1, cancelled=1
    )
    assert (counts.ready, counts.total, pool.size()) == (1, 7, 2)
    check_counts(pool)


def test_unknown_pool_is_empty(pool: WorkPool) -> None:
    assert pool.counts() == Counts()
    assert pool.items() == []
    assert pool.size() == 0


def test_unknown_item_is_an_error(store: Store, pool: WorkPool) -> None:
    with pytest.raises(UnknownItem):
        pool.get("nothing")
    with pytest.raises(UnknownItem):
        store.get("nothing")


def test_item_of_another_pool_is_not_in_this_one(store: Store, pool: WorkPool) -> None:
    item_id = store.pool("other").push(1)
    with pytest.raises(UnknownItem):
        pool.get(item_id)
    assert store.get(item_id).pool == "other"


def test_the_pools_of_many_items_are_found_in_one_step(store: Store, pool: WorkPool) -> None:
    mine, theirs = pool.push("work"), store.pool("other").push("work")
    found = store.backend.pools_of([theirs, mine, "nothing", mine])
    assert found == ["other", "papers", None, "papers"]


def test_more_items_than_one_request_names_are_steered(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    ids = pool.push_many(range(MAX_IDS + 1))
    with pytest.raises(UnknownItem):
        pool.cancel(*ids, "nothing")
    assert pool.counts().pending == MAX_IDS + 1, "all or nothing"
    claimed = [*pool.claim_many("w1", MAX_IDS), *pool.claim_many("w1", 1)]
    ended = [pool.failure(item, "no", poison=True) for item in claimed]
    assert pool.settle_many(ended) == (True,) * (MAX_IDS + 1)
    assert pool.requeue(*ids) == MAX_IDS + 1
    assert pool.cancel(*ids) == MAX_IDS + 1


def test_items_are_listed_page_by_page_in_order_of_arrival(pool: WorkPool) -> None:
    ids = [pool.push(n, priority=n % 3) for n in range(10)]
    pages = [pool.items(limit=4)]
    while pages[-1]:
        pages.append(pool.items(limit=4, after=pages[-1][-1].id))
    assert [len(page) for page in pages] == [4, 4, 2, 0]
    assert [item.id for page in pages for item in page] == ids


def test_items_are_listed_by_status(pool: WorkPool, worker: WorkerRecord) -> None:
    ids = make_one_of_each(pool)
    for status in ("done", "poisoned", "cancelled", "claimed", "backlog"):
        assert [item.id for item in pool.items(status)] == [ids[status]]
    assert [item.id for item in pool.items("pending")] == [ids["pending"], ids["delayed"]]
    assert [item.id for item in pool.items("pending", after=ids["pending"])] == [ids["delayed"]]
    assert [item.id for item in pool.items("pending", limit=1)] == [ids["pending"]]


def test_items_after_an_item_of_another_status_go_on_from_there(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    first, second, third = pool.push_many(range(3))
    pool.cancel(second)
    assert [item.id for item in pool.items("pending", after=first)] == [third]
    assert [item.id for item in pool.items("pending", after=second)] == [third]


def test_items_after_an_unknown_item_are_an_error(pool: WorkPool) -> None:
    pool.push(1)
    with pytest.raises(UnknownItem):
        pool.items(after="nothing")


def test_unknown_status_is_refused(pool: WorkPool) -> None:
    with pytest.raises(InvalidInput):
        pool.items("finished")


# -- settings and pause -------------------------------------------------------------------------


def test_settings_of_an_unknown_pool_are_the_defaults(pool: WorkPool) -> None:
    state = pool.state()
    assert (state.name, state.settings, state.version) == ("papers", PoolSettings(), 0)
    assert (state.paused, state.paused_seconds) == (False, None)


def test_configure_changes_what_it_names(pool: WorkPool, open_again: Callable[[], Store]) -> None:
    assert pool.configure(tenant_limit=3, tenant_limits={"a": 5})
    assert pool.configure(keep_done_seconds=None)
    state = open_again().pool("papers").state()
    assert state.version == 2
    settings = state.settings
    assert (settings.tenant_limit, settings.tenant_limits) == (3, {"a": 5})
    assert settings.keep_done_seconds is None
    assert settings.keep_cancelled_seconds == PoolSettings().keep_cancelled_seconds


def test_configure_with_an_old_version_changes_nothing(pool: WorkPool) -> None:
    pool.configure(tenant_limit=3)
    assert not pool.configure(if_version=0, tenant_limit=4)
    assert not pool.configure(if_version=2, tenant_limit=4)
    assert pool.state().settings.tenant_limit == 3
    assert pool.configure(if_version=1, tenant_limit=4)
    assert (pool.state().settings.tenant_limit, pool.state().version) == (4, 2)


def test_push_leaves_the_settings_alone(pool: WorkPool) -> None:
    pool.configure(tenant_limit=3)
    pool.push(1, tenant="a")
    assert (pool.state().settings.tenant_limit, pool.state().version) == (3, 1)


def test_pause_until_resumed(pool: WorkPool, advance: Advance) -> None:
    pool.pause()
    advance(10 * 86400)
    state = pool.state()
    assert (state.paused, state.paused_seconds) == (True, None)
    pool.resume()
    assert not pool.state().paused


def test_pause_for_a_while(pool: WorkPool, advance: Advance) -> None:
    pool.pause(60)
    assert pool.state().paused_seconds == pytest.approx(60, abs=2)
    advance(50)
    assert pool.state().paused_seconds == pytest.approx(10, abs=2)
    advance(11)
    assert (pool.state().paused, pool.state().paused_seconds) == (False, None)


def test_later_pause_replaces_the_earlier_one(pool: WorkPool, advance: Advance) -> None:
    pool.pause()
    pool.pause(60)
    advance(61)
    assert not pool.state().paused


def test_to_hold_off_is_to_pause_for_at_least_so_long(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.push("work")
    pool.hold_off(60)
    pool.hold_off(20)
    assert pool.state().paused_seconds == pytest.approx(60, abs=2)
    assert pool.observe().claimable == 0
    assert pool.claim(worker) is None
    pool.hold_off(90)
    assert pool.state().paused_seconds == pytest.approx(90, abs=2)
    advance(91)
    assert pool.claim(worker) is not None


def test_to_hold_off_does_not_end_a_persons_pause(pool: WorkPool, advance: Advance) -> None:
    pool.pause()
    pool.hold_off(5)
    advance(10)
    assert (pool.state().paused, pool.state().paused_seconds) == (True, None)
    pool.resume()
    assert not pool.state().paused


def test_paused_pool_takes_pushes_and_results(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push(1)
    item = must_claim(pool)
    pool.pause()
    pool.push(2)
    assert pool.complete(item, "done")
    assert pool.counts() == Counts(pending=1, done=1)


# -- cancel and requeue -------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["pending", "delayed", "backlog", "claimed"])
def test_unfinished_items_can_be_cancelled(
    pool: WorkPool, worker: WorkerRecord, status: str, advance: Advance
) -> None:
    item_id = make_one_of_each(pool)[status]
    assert pool.cancel(item_id) == 1
    item = pool.get(item_id)
    assert (item.status, item.claimed_by, item.token) == ("cancelled", None, None)
    assert item.finished_at is not None
    assert pool.cancel(item_id) == 0
    advance(501)
    check_counts(pool)
    assert item_id not in {item.id for item in pool.claim_many("w1", 10)}


@pytest.mark.parametrize("status", ["done", "poisoned", "cancelled"])
def test_finished_items_cannot_be_cancelled(
    pool: WorkPool, worker: WorkerRecord, status: str
) -> None:
    item_id = make_one_of_each(pool)[status]
    before = pool.get(item_id)
    assert pool.cancel(item_id) == 0
    assert pool.get(item_id) == before


def test_cancelled_item_leaves_its_workers_claims(
    store: Store, pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push(1)
    pool.cancel(must_claim(pool).id)
    found = store.workers.get("w1")
    assert found is not None
    assert found.claims == 0
    assert store.workers.update_status("w1", "lost")
    assert pool.counts().cancelled == 1


@pytest.mark.parametrize("status", ["poisoned", "cancelled", "backlog"])
def test_requeued_item_is_pending_as_if_it_were_new(
    pool: WorkPool, worker: WorkerRecord, status: str
) -> None:
    item_id = pool.push("work", max_retries=5, backlog=status == "backlog")
    if status != "backlog":
        item = must_claim(pool)
        pool.save_checkpoint(item, {"page": 3})
        pool.report_progress(item, 0.5, "half")
        pool.fail(item, "error", poison=True)
        if status == "cancelled":
            pool.requeue(item_id)
            pool.save_checkpoint(must_claim(pool), {"page": 4})
            pool.cancel(item_id)
    assert pool.get(item_id).status == status
    assert pool.requeue(item_id) == 1
    item = pool.get(item_id)
    assert (item.status, item.attempts, item.claimed_by) == ("pending", 0, None)
    assert (item.checkpoint, item.progress, item.progress_note) == (None, None, None)
    assert (item.result, item.finished_at) == (None, None)
    assert item.error == (None if status == "backlog" else "error")  # kept for reading
    assert must_claim(pool).attempts == 1


def test_requeued_item_is_under_no_suspicion(pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1"), enrol("w2")
    ids = pool.push_many(["a", "b"])
    pool.claim_many("w1", 2)
    pool.release_by_worker("w1")
    pool.cancel(*ids), pool.requeue(*ids)
    assert len(pool.claim_many("w2", 2)) == 2


def test_requeued_item_has_all_its_attempts(pool: WorkPool, worker: WorkerRecord) -> None:
    item_id = pool.push("bad", max_retries=2)
    for _ in range(2):
        for _ in range(2):
            pool.fail(must_claim(pool), "no")
        assert pool.get(item_id).status == "poisoned"
        assert pool.requeue(item_id) == 1


def test_epochs_only_grow(pool: WorkPool, worker: WorkerRecord) -> None:
    item_id = pool.push("work")
    pool.fail(must_claim(pool), "no", poison=True)
    pool.requeue(item_id)
    assert pool.get(item_id).epoch == 1
    assert must_claim(pool).epoch == 2


@pytest.mark.parametrize("status", ["done", "pending", "delayed", "claimed"])
def test_done_and_live_items_are_not_requeued(
    pool: WorkPool, worker: WorkerRecord, status: str
) -> None:
    item_id = make_one_of_each(pool)[status]
    before = pool.get(item_id)
    assert pool.requeue(item_id) == 0
    assert pool.get(item_id) == before


def test_cancel_and_requeue_count_what_they_changed(pool: WorkPool, worker: WorkerRecord) -> None:
    ids = make_one_of_each(pool)
    assert pool.cancel(*ids.values()) == 4
    assert pool.requeue(*ids.values()) == 6
    assert pool.cancel(ids["pending"], ids["pending"]) == 1
    assert pool.cancel() == 0
    assert pool.requeue() == 0


@pytest.mark.parametrize("verb", ["cancel", "requeue"])
def test_items_of_another_pool_are_left_alone(
    store: Store, pool: WorkPool, worker: WorkerRecord, verb: str
) -> None:
    other = store.pool("other")
    parked = other.push("parked", backlog=True)
    mine = pool.push("mine", backlog=True)
    assert getattr(pool, verb)(parked, mine) == 1
    assert other.get(parked).status == "backlog"


@pytest.mark.parametrize("verb", ["cancel", "requeue"])
def test_unknown_id_undoes_the_whole_call(pool: WorkPool, verb: str) -> None:
    item_id = pool.push("parked", backlog=True)
    with pytest.raises(UnknownItem):
        getattr(pool, verb)(item_id, "nothing")
    assert pool.get(item_id).status == "backlog"


# -- checkpoints and progress -------------------------------------------------------------------


def test_checkpoint_is_there_for_the_next_attempt(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("work")
    item = must_claim(pool)
    assert pool.load_checkpoint(item) is None
    assert pool.save_checkpoint(item, {"page": 1})
    assert pool.save_checkpoint(item, {"page": 2})
    assert pool.load_checkpoint(item) == {"page": 2}
    pool.fail(item, "again")
    again = must_claim(pool)
    assert again.checkpoint == {"page": 2}


def test_checkpoint_and_progress_stay_when_the_item_is_done(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push("work")
    item = must_claim(pool)
    pool.save_checkpoint(item, [1])
    pool.report_progress(item, 0.75, "nearly")
    pool.complete(item)
    found = pool.get(item)
    assert (found.checkpoint, found.progress, found.progress_note) == ([1], 0.75, "nearly")


def test_progress_and_checkpoint_do_not_touch_each_other(
    pool: WorkPool, worker: WorkerRecord
) -> None:
    pool.push("work")
    item = must_claim(pool)
    pool.save_checkpoint(item, "here")
    pool.report_progress(item, 0.5, "half")
    pool.report_progress(item, 1)
    found = pool.get(item)
    assert (found.checkpoint, found.progress) == ("here", 1.0)
    pool.save_checkpoint(item, None)
    assert pool.get(item).progress == 1.0


@pytest.mark.parametrize("lost", ["released", "taken", "settled", "cancelled"])
def test_only_the_holder_saves(pool: WorkPool, enrol: Enrol, lost: str) -> None:
    enrol("w1"), enrol("w2")
    pool.push("work")
    item = must_claim(pool)
    if lost == "settled":
        pool.complete(item)
    elif lost == "cancelled":
        pool.cancel(item.id)
    else:
        pool.release_by_worker("w1")
    if lost == "taken":
        must_claim(pool, "w2")
    before = pool.get(item)
    assert not pool.save_checkpoint(item, "late")
    assert not pool.report_progress(item, 0.5)
    assert not pool.save_checkpoint(item.replace(token=None), "no token")
    assert pool.get(item) == before


def test_unknown_item_cannot_be_saved(pool: WorkPool) -> None:
    with pytest.raises(UnknownItem):
        pool.save_checkpoint("nothing", 1)


# -- retention ----------------------------------------------------------------------------------


def test_purge_deletes_finished_items_past_their_retention(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.configure(keep_done_seconds=100, keep_poisoned_seconds=200, keep_cancelled_seconds=300)
    ids = make_one_of_each(pool)
    gone: list[str] = []
    for status in ("done", "poisoned", "cancelled"):
        advance(90)
        assert pool.purge() == 0
        advance(11)
        assert pool.purge() == 1
        gone.append(ids[status])
        with pytest.raises(UnknownItem):
            pool.get(ids[status])
        check_counts(pool)
    left = {item.id for item in pool.items()}
    assert left == set(ids.values()) - set(gone)


def test_compact_changes_nothing_but_the_space(
    store: Store, pool: WorkPool, worker: WorkerRecord
) -> None:
    make_one_of_each(pool)
    before = pool.items()
    sizes = store.compact()
    assert sizes is None or 0 < sizes[1] <= sizes[0]
    assert pool.items() == before
    assert pool.push("after")


def test_purge_keeps_what_is_kept_for_ever(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.configure(keep_done_seconds=None, keep_cancelled_seconds=None)
    make_one_of_each(pool)
    advance(3650 * 86400)
    assert pool.purge() == 0
    assert pool.counts().total == 7


def test_purge_by_default_keeps_poisoned_items_and_a_week_of_the_others(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    make_one_of_each(pool)
    advance(7 * 86400 - 10)
    assert pool.purge() == 0
    advance(20)
    assert pool.purge() == 2
    assert pool.counts().poisoned == 1


def test_purge_stops_at_its_limit(pool: WorkPool, worker: WorkerRecord, advance: Advance) -> None:
    pool.cancel(*pool.push_many(range(5)))
    advance(8 * 86400)
    assert [pool.purge(limit=2) for _ in range(4)] == [2, 2, 1, 0]


def test_store_purges_every_pool(store: Store, advance: Advance) -> None:
    for name in ("one", "other"):
        store.pool(name).cancel(store.pool(name).push(1))
    advance(8 * 86400)
    assert store.purge() == 2


def test_requeued_item_is_not_purged(pool: WorkPool, advance: Advance) -> None:
    item_id = pool.push(1)
    pool.cancel(item_id)
    pool.requeue(item_id)
    advance(8 * 86400)
    assert pool.purge() == 0


# -- the store ----------------------------------------------------------------------------------


def test_store_describes_itself(store: Store) -> None:
    assert store.describe()["kind"] in ("memory", "sqlite", "postgresql", "redis", "http")
