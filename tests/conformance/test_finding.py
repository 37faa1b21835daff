"""Items are found by state, error, key, tenant and age, from either end, in bounded steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from sprat.core import item_filter, model
from sprat.core.errors import InvalidInput, UnknownItem
from sprat.core.model import ItemFilter, WorkerRecord, WorkItem
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.sqlite import search
from sprat.store.sqlite.items import LIST_STATUS
from sprat.store.store import Store

Advance = Callable[[float], None]


def must_claim(pool: WorkPool) -> WorkItem:
    item = pool.claim("w1")
    assert item is not None
    return item


def ids(items: list[WorkItem]) -> list[str]:
    return [item.id for item in items]


def fail(pool: WorkPool, data: str, error: str, **options: object) -> str:
    item_id = pool.push(data, **options)  # type: ignore[arg-type]
    assert pool.fail(must_claim(pool), error, poison=True)
    return item_id


def steps(store: Store, wanted: ItemFilter, limit: int) -> list[list[str]]:
    """The answers of all steps of one search."""
    answers: list[list[str]] = []
    after: str | None = None
    while True:
        step = store.backend.find("papers", wanted, limit, after)
        answers.append(ids(list(step.items)))
        after = step.after
        if after is None:
            return answers


def test_items_are_found_by_the_text_of_their_error(pool: WorkPool, worker: WorkerRecord) -> None:
    late = fail(pool, "a", "TimeoutError: 100 % late\nin line 2 \u00e9")
    broken = fail(pool, "b", "ValueError: bad_value")
    done = pool.push("c")
    pool.complete(must_claim(pool))
    assert ids(pool.items(error="Timeout")) == [late]
    assert ids(pool.items("failed", error="line 2 \u00e9")) == [late]
    assert ids(pool.items("poisoned", error="Error")) == [late, broken]
    for text in ("timeout", "%", "T%r", "_", "gone"):
        expected = {"%": [late], "_": [broken]}.get(text, [])
        assert ids(pool.items(error=text)) == expected, text
    assert ids(pool.items("done", newest=True)) == [done]


def test_items_are_found_by_key_and_tenant(store: Store, pool: WorkPool) -> None:
    first = pool.push(1, key="k1", tenant="acme")
    second = pool.push(2, key="k2", tenant="acme")
    third = pool.push(3)
    store.pool("other").push(4, key="k1", tenant="acme")
    assert ids(pool.items(key="k1")) == [first]
    assert ids(pool.items("ready", key="k2", tenant="acme")) == [second]
    assert pool.items("failed", key="k2") == []
    assert pool.items(key="k1", after=first) == []
    assert pool.items(key="gone") == pool.items(tenant="gone") == []
    assert ids(pool.items(tenant="acme")) == [first, second]
    assert ids(pool.items(tenant="acme", newest=True)) == [second, first]
    assert third not in ids(pool.items(tenant="acme"))


def test_items_are_found_by_age(pool: WorkPool, advance: Advance) -> None:
    old = pool.push("old")
    advance(100)
    fresh = pool.push("fresh")
    advance(10)
    assert ids(pool.items(older=50)) == [old]
    assert ids(pool.items(newer=50)) == [fresh]
    assert ids(pool.items(older=5, newer=200)) == [old, fresh]
    assert pool.items(older=200) == []


def test_newest_items_come_first(pool: WorkPool) -> None:
    pushed = pool.push_many(range(7))
    assert ids(pool.items(newest=True, limit=3)) == pushed[:3:-1]
    rest = pool.items(newest=True, limit=10, after=pushed[4])
    assert ids(rest) == pushed[3::-1]
    assert pool.items(newest=True, after=pushed[0]) == []


@pytest.mark.parametrize("newest", [False, True])
def test_items_are_found_by_each_word_for_their_state(
    pool: WorkPool, worker: WorkerRecord, advance: Advance, *, newest: bool
) -> None:
    by_word = {"failed": fail(pool, "failed", "error"), "cancelled": pool.push("cancelled")}
    pool.cancel(by_word["cancelled"])
    for word in ("done", "running"):
        by_word[word] = pool.push(word)
        item = must_claim(pool)
        if word == "done":
            pool.complete(item)
    by_word["ready"] = pool.push("ready")
    by_word["delayed"] = pool.push("delayed", delay=500)
    by_word["backlog"] = pool.push("backlog", backlog=True)
    by_word |= {"poisoned": by_word["failed"], "claimed": by_word["running"]}
    for word, item_id in by_word.items():
        assert ids(pool.items(word, newest=newest)) == [item_id], word
        assert ids(pool.items(word)) == [item_id], word
    pending = [by_word["ready"], by_word["delayed"]]
    assert ids(pool.items("pending", newest=newest)) == pending[:: -1 if newest else 1]
    advance(600)
    assert ids(pool.items("ready")) == pending
    assert pool.items("delayed") == []


def test_held_items_are_ready_not_delayed(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("photo", task="shop:resize")
    item = must_claim(pool)
    settlement = model.Settlement(
        item_id=item.id, token=item.token, outcome=model.PARK, error="unknown", delay=60.0
    )
    assert pool.settle_many([settlement]) == (True,)
    assert ids(pool.items("ready")) == [item.id]
    assert pool.items("delayed") == []


def test_items_are_found_by_the_beginning_of_their_id(store: Store, pool: WorkPool) -> None:
    item_id = pool.push("mine")
    theirs = store.pool("other").push("theirs")
    find = store.backend.find
    found = find("papers", ItemFilter(prefix=item_id[:20]), 2, None)
    assert ids(list(found.items)) == [item_id]
    assert find("papers", ItemFilter(prefix=theirs[:20]), 2, None).items == ()
    assert find("papers", ItemFilter(prefix=item_id[:-1] + "g"), 2, None).items == ()
    assert len(find("papers", ItemFilter(prefix=item_id), 2, None).items) == 1


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("status", [None, "pending"])
def test_a_search_goes_on_where_it_stopped(
    store: Store,
    pool: WorkPool,
    monkeypatch: pytest.MonkeyPatch,
    status: str | None,
    *,
    newest: bool,
) -> None:
    monkeypatch.setattr(item_filter, "WINDOW", 3)
    tenants = ["acme" if n % 4 == 0 else None for n in range(10)]
    pushed = [pool.push(n, tenant=tenant) for n, tenant in enumerate(tenants)]
    expected = [pushed[0], pushed[4], pushed[8]][:: -1 if newest else 1]
    wanted = ItemFilter(status=status, tenant="acme", newest=newest)
    for limit in (1, 2, 10):
        answers = steps(store, wanted, limit)
        assert [one for answer in answers for one in answer] == expected
        assert max(map(len, answers)) <= limit
    assert ids(pool.items(status, tenant="acme", newest=newest, limit=2)) == expected[:2]


@pytest.mark.parametrize(
    "bad",
    [
        {"status": "asleep"},
        {"error": ""},
        {"error": "\0"},
        {"error": 3},
        {"key": ""},
        {"tenant": "\n"},
        {"older": -1},
        {"newer": float("nan")},
    ],
)
def test_filters_that_cannot_be_are_refused(pool: WorkPool, bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        pool.items(**bad)  # type: ignore[arg-type]


def test_a_search_cannot_begin_after_an_unknown_item(pool: WorkPool) -> None:
    pool.push(1)
    with pytest.raises(UnknownItem):
        pool.items(newest=True, after="gone")


@pytest.mark.parametrize("status", [*model.ITEM_STATUSES, "key", "prefix"])
def test_sqlite_looks_only_at_items_of_the_status(status: str, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        store.pool("papers").push(1)
    db = apsw.Connection(f"{tmp_path}/fleet.db")
    statements = [text for (name, _), text in search.STATEMENTS.items() if name == status]
    statements += [LIST_STATUS[status]] if status in LIST_STATUS else []
    assert statements or status == model.DONE
    for text in statements:
        values = ("papers", 0, 10, *[None] * 9)[: 12 if "?12" in text else 3]
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {text}", values)]
        assert not [step for step in plan if step.startswith("SCAN work_pool")], plan
    db.close()
