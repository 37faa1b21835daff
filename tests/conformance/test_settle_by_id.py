"""Settle by id: the process that claimed an item may settle it through any object of its store."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection

import pytest
from processes import beside, hear
from worlds import World

from sprat.core.errors import NotClaimedHere, UnknownItem
from sprat.core.model import WorkerRecord, WorkerRegistration, WorkItem
from sprat.store import claim_tokens
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.store import Store

VERBS: dict[str, Callable[[WorkPool, str], bool]] = {
    "complete": lambda pool, item_id: pool.complete(item_id, "result"),
    "fail": lambda pool, item_id: pool.fail(item_id, "no good"),
    "hand_back": lambda pool, item_id: pool.hand_back(item_id),
    "save_checkpoint": lambda pool, item_id: pool.save_checkpoint(item_id, {"page": 3}),
    "report_progress": lambda pool, item_id: pool.report_progress(item_id, 0.5),
}


def must_claim(pool: WorkPool) -> WorkItem:
    item = pool.claim("w1")
    assert item is not None
    return item


@pytest.fixture
def claimed(pool: WorkPool, worker: WorkerRecord) -> WorkItem:
    pool.push({"n": 1}, max_retries=3)
    return must_claim(pool)


@pytest.mark.parametrize("verb", VERBS)
def test_any_pool_object_of_the_store_settles_by_id(
    store: Store, claimed: WorkItem, verb: str
) -> None:
    assert VERBS[verb](store.pool("papers"), claimed.id)
    assert VERBS[verb](store.pool("papers"), claimed.id)  # repeating it is success again


def test_another_store_object_of_this_process_settles_by_id(
    pool: WorkPool, claimed: WorkItem, open_again: Callable[[], Store]
) -> None:
    assert open_again().pool("papers").complete(claimed.id, "by id")
    assert pool.get(claimed.id).result == "by id"


def test_settle_by_id_of_a_lost_claim_is_false(
    store: Store, pool: WorkPool, claimed: WorkItem
) -> None:
    store.workers.update_status("w1", "lost")
    assert not store.pool("papers").complete(claimed.id, "late")
    assert pool.get(claimed.id).status == "pending"


def test_settle_by_id_uses_the_latest_claim_of_this_process(
    store: Store, pool: WorkPool, claimed: WorkItem
) -> None:
    pool.fail(claimed.id, "again")
    must_claim(store.pool("papers"))
    assert pool.complete(claimed.id, "second attempt")
    assert pool.get(claimed.id).result == "second attempt"


@pytest.mark.parametrize("verb", VERBS)
def test_an_id_that_this_process_never_claimed_is_an_error(
    store: Store, pool: WorkPool, worker: WorkerRecord, verb: str
) -> None:
    item_id = pool.push("waiting")
    with pytest.raises(NotClaimedHere, match=f"{item_id}.*pass the item that `claim` returned"):
        VERBS[verb](pool, item_id)
    assert (pool.get(item_id).status, pool.get(item_id).attempts) == ("pending", 0)
    with pytest.raises(UnknownItem):
        VERBS[verb](pool, "no-such-item")
    with pytest.raises(UnknownItem):
        VERBS[verb](store.pool("other"), item_id)


def test_the_item_itself_settles_in_any_process(shared: World) -> None:
    pool, item = _claimed(shared.open())
    assert _elsewhere(_settle_by_id, shared.url, item) == "NotClaimedHere"
    assert pool.get(item).status == "claimed"
    assert _elsewhere(_settle_by_item, shared.url, item) == "True"
    assert pool.get(item).result == "elsewhere"


def _claimed(store: Store) -> tuple[WorkPool, WorkItem]:
    store.workers.register(WorkerRegistration(worker_id="w1", pool_id="papers"))
    pool = store.pool("papers")
    pool.push("work")
    return pool, must_claim(pool)


def _elsewhere(step: Callable[..., None], url: str, item: WorkItem) -> str:
    """Run a step in a process that shares no memory with this one."""
    mine, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=step, args=(theirs, url, item))
    process.start()
    answer = str(hear(mine))
    process.join()
    return answer


def _settle_by_id(pipe: Connection, url: str, item: WorkItem) -> None:
    with open_store(url) as store:
        try:
            pipe.send(store.pool("papers").complete(item.id, "elsewhere"))
        except NotClaimedHere as error:
            pipe.send(type(error).__name__)


def _settle_by_item(pipe: Connection, url: str, item: WorkItem) -> None:
    with open_store(url) as store:
        pipe.send(store.pool("papers").complete(item, "elsewhere"))


def test_a_forked_child_settles_what_its_parent_claimed(shared: World) -> None:
    pool, item = _claimed(shared.open())
    process, pipe = beside(_settle_by_id, shared.url, item)
    assert hear(pipe) is True
    process.join()
    assert pool.get(item).result == "elsewhere"


def test_the_latest_claims_are_remembered(
    monkeypatch: pytest.MonkeyPatch, pool: WorkPool, worker: WorkerRecord
) -> None:
    monkeypatch.setattr(claim_tokens, "REMEMBERED_CLAIMS", 10)
    pool.push_many(range(50))
    ids = [must_claim(pool).id for _ in range(50)]
    with pytest.raises(NotClaimedHere):
        pool.complete(ids[0])
    assert all(pool.complete(item_id) for item_id in ids[-10:])
