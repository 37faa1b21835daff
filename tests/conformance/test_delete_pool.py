"""Deleting a pool: nothing of it is left, and nothing unfinished is ever deleted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprat.core import model
from sprat.core.errors import InvalidInput, PoolInUse, UnknownItem
from sprat.core.model import Counts, PoolSettings, WorkerRecord
from sprat.fleet import policy_input
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Advance = Callable[[float], None]
Enrol = Callable[..., WorkerRecord]


def finish_some(pool: WorkPool, worker_id: str = "w1") -> list[str]:
    """A done, a poisoned and a cancelled item."""
    ids = [pool.push(n, key=f"k{n}", tenant="acme") for n in range(3)]
    for settle in (pool.complete, lambda item: pool.fail(item, "no", poison=True)):
        item = pool.claim(worker_id)
        assert item is not None
        assert settle(item)
    assert pool.cancel(*ids) == 1
    return ids


def decide(pool: WorkPool) -> None:
    decision = model.Decision(
        pool=pool.name,
        policy="fixed",
        direction="hold",
        current=0,
        desired=0,
        reason="a test",
        max_workers=1,
    )
    assert pool.record(decision, version=pool.observe().version) is not None


def test_nothing_is_left_of_a_deleted_pool(store: Store, pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1", pool_id="papers")
    ids = finish_some(pool)
    pool.configure(tenant_limit=2)
    pool.pause(reason="maintenance")
    decide(pool)
    store.workers.update_status("w1", model.TERMINATED)
    assert store.delete_pool("papers") is True
    assert store.pools() == []
    assert (pool.counts(), pool.items(), pool.decisions()) == (Counts(), [], [])
    state = pool.state()
    assert (state.settings, state.version, state.paused) == (PoolSettings(), 0, False)
    stats = pool.stats(3600)
    assert (stats.arrivals, stats.finished) == (0, 0)
    assert pool.totals() == model.Totals()
    assert (pool.observe().version, store.workers.list()) == (0, [])
    for item_id in ids:
        with pytest.raises(UnknownItem):
            store.get(item_id)


def test_a_deleted_pool_is_made_anew_by_a_push(store: Store, pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1")
    finish_some(pool)
    store.delete_pool("papers")
    item_id = pool.push("again", key="k0")  # the key is free again, with any payload
    assert pool.counts() == Counts(pending=1)
    item = pool.claim("w1")
    assert item is not None
    assert item.id == item_id
    assert pool.complete(item)
    assert store.pools() == ["papers"]


def test_other_pools_stay_as_they_are(store: Store, pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1")
    other = store.pool("papers2")
    kept = [*finish_some(other), other.push("waits")]
    store.backend.put(policy_input.KIND, "papers2/gpu", "{}", None, None)
    pool.cancel(pool.push(1))
    before = (other.counts(), other.stats(3600).arrivals)
    assert store.delete_pool("papers")
    assert (other.counts(), other.stats(3600).arrivals) == before
    assert [item.id for item in other.items()] == kept
    assert store.backend.document(policy_input.KIND, "papers2/gpu") is not None


def test_what_policies_noted_about_the_pool_is_deleted(store: Store, pool: WorkPool) -> None:
    pool.configure(max_workers=3)
    for name in ("papers/", "papers/cpu", "papers/gpu"):
        store.backend.put(policy_input.KIND, name, "{}", None, None)
    assert store.delete_pool("papers")
    assert store.backend.documents(policy_input.KIND, 10, None) == []


@pytest.mark.parametrize("options", [{}, {"delay": 500}, {"backlog": True}])
def test_a_pool_with_unfinished_jobs_is_kept(
    store: Store, pool: WorkPool, enrol: Enrol, options: dict[str, object]
) -> None:
    enrol("w1")
    finish_some(pool)
    pool.push(1, **options)  # type: ignore[arg-type]  # one of the options of a push
    before = pool.counts()
    with pytest.raises(PoolInUse, match=r"has 1 (waiting|backlog) job: run `sprat jobs cancel"):
        store.delete_pool("papers")
    assert pool.counts() == before


def test_a_pool_with_a_running_job_is_kept(store: Store, pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1")
    pool.push(1)
    item = pool.claim("w1")
    assert item is not None
    with pytest.raises(PoolInUse, match=r"1 running job: .*`sprat workers drain --pool papers`"):
        store.delete_pool("papers")
    assert pool.complete(item, "result")
    assert store.delete_pool("papers")


def test_a_pool_with_a_live_worker_is_kept(store: Store, pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1", pool_id="papers")
    pool.configure(max_workers=3)
    with pytest.raises(PoolInUse, match=r"1 live worker: .*`sprat workers drain --pool papers`"):
        store.delete_pool("papers")
    assert pool.state().settings.max_workers == 3


def test_a_worker_whose_lease_ended_does_not_keep_the_pool(
    store: Store, pool: WorkPool, enrol: Enrol, advance: Advance
) -> None:
    enrol("w1", pool_id="papers", lease_seconds=20.0)
    pool.configure(max_workers=3)
    advance(60)
    assert store.delete_pool("papers")
    assert store.workers.list() == []


def test_deleting_again_is_no_error(store: Store, pool: WorkPool) -> None:
    pool.cancel(pool.push(1))
    assert store.delete_pool("papers") is True
    assert store.delete_pool("papers") is False
    with pytest.raises(InvalidInput):
        store.delete_pool("")


def test_finished_items_are_deleted_in_steps(store: Store, pool: WorkPool, enrol: Enrol) -> None:
    enrol("w1")
    finish_some(pool)
    pool.push_many(range(3))
    for item in pool.claim_many("w1", 3):
        pool.complete(item)
    steps = [store.backend.delete_pool("papers", 4)]
    assert pool.counts().total == 2
    steps.append(store.backend.delete_pool("papers", 4))
    assert steps == [False, True]
    assert store.pools() == []
