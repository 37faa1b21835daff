"""Pushing and completing inside a transaction of the application's own."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from patience import eventually
from worlds import World

from sprat.core.errors import InvalidInput, KeyConflict, PoolInUse, UnknownItem
from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.store import Store

WAITS_FOR_POOL = "SELECT 1 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"


def test_a_push_exists_when_the_callers_transaction_does(
    pool: WorkPool, mine: psycopg.Connection
) -> None:
    mine.execute("CREATE TABLE IF NOT EXISTS paper (title text)")
    mine.execute("INSERT INTO paper VALUES ('On Sprats')")
    item_id = pool.push("paper 1", connection=mine)
    assert pool.counts().pending == 0
    mine.commit()
    assert pool.get(item_id).data == "paper 1"
    assert pool.counts().pending == 1


def test_the_pages_example_runs_as_printed(
    pool: WorkPool, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).parents[2] / "docs" / "operate" / "postgresql.md"
    [code] = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("SPRAT_URL", url)
    exec(compile(code, page.name, "exec"), {})
    assert [item.data for item in pool.items()] == [{"title": "On queues"}]


def test_a_push_is_gone_with_the_callers_transaction(
    pool: WorkPool, mine: psycopg.Connection
) -> None:
    item_id = pool.push("paper 1", connection=mine)
    pool.push_many(["paper 2", "paper 3"], connection=mine)
    mine.rollback()
    assert pool.counts().total == 0
    with pytest.raises(UnknownItem):
        pool.get(item_id)


def test_a_result_is_stored_with_the_callers_own_work_or_not_at_all(
    store: Store, pool: WorkPool, mine: psycopg.Connection
) -> None:
    worker = store.workers.register(WorkerRegistration(worker_id="w1"))
    pool.push("paper")
    item = pool.claim(worker)
    assert item is not None
    assert pool.complete(item, "read", connection=mine)
    mine.rollback()
    assert pool.get(item).status == "claimed"
    assert pool.complete(item, "read", connection=mine)
    mine.commit()
    assert (pool.get(item).status, pool.get(item).result) == ("done", "read")


def test_a_lost_claim_lets_the_caller_roll_back(
    store: Store, pool: WorkPool, mine: psycopg.Connection
) -> None:
    worker = store.workers.register(WorkerRegistration(worker_id="w1"))
    pool.push("paper")
    item = pool.claim(worker)
    assert item is not None
    pool.cancel(item.id)
    assert not pool.complete(item, "read", connection=mine)


def test_what_is_refused_leaves_the_callers_transaction_usable(
    pool: WorkPool, mine: psycopg.Connection
) -> None:
    pool.push("paper", key="k")
    kept = pool.push("another", connection=mine)
    with pytest.raises(KeyConflict):
        pool.push("not the same", key="k", connection=mine)
    with pytest.raises(UnknownItem):
        pool.complete("nothing", connection=mine)
    mine.commit()
    assert pool.get(kept).data == "another"
    assert pool.counts().pending == 2


def test_what_is_no_connection_is_refused(pool: WorkPool) -> None:
    with pytest.raises(InvalidInput, match=r"takes a psycopg\.Connection, not str"):
        pool.push("paper", connection="postgresql://")


def test_other_stores_say_that_they_cannot_join(world: World) -> None:
    with open_store("memory://") as store, pytest.raises(InvalidInput, match="only a PostgreSQL"):
        store.pool("papers").push("paper", connection=object())


def test_a_pool_with_a_push_in_an_open_transaction_is_not_deleted(
    store: Store, pool: WorkPool, mine: psycopg.Connection, url: str
) -> None:
    pool.cancel(pool.push("finished"))
    item_id = pool.push("late", connection=mine)
    with ThreadPoolExecutor(1) as executor, psycopg.connect(url, autocommit=True) as other:
        deletion = executor.submit(store.delete_pool, "papers")
        eventually(lambda: other.execute(WAITS_FOR_POOL).fetchone() is not None)
        mine.commit()
        with pytest.raises(PoolInUse, match="1 waiting job"):
            deletion.result(60)
    store.workers.register(WorkerRegistration(worker_id="w1"))
    assert [item.id for item in pool.claim_many("w1", 9)] == [item_id]
