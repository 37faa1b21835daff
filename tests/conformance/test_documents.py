"""Small records with versions and an end, and token buckets: on every store."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprat.store.store import Store

Advance = Callable[[float], None]

KIND, OTHER, UNUSED = "scaling", "controller", "machine-run"  # kinds that HTTP serves too


def test_a_document_comes_back_with_its_version(store: Store) -> None:
    assert store.backend.put(KIND, "a", '{"x": 1}', None, None)
    found = store.backend.document(KIND, "a")
    assert found is not None
    assert (found.kind, found.name, found.body, found.version) == (KIND, "a", '{"x": 1}', 1)


def test_an_unknown_document_is_none(store: Store) -> None:
    store.backend.put(KIND, "a", "1", None, None)
    assert store.backend.document(KIND, "b") is None
    assert store.backend.document(OTHER, "a") is None


def test_only_the_expected_version_is_replaced(store: Store) -> None:
    put = store.backend.put
    assert put(KIND, "a", "1", 0, None)
    assert not put(KIND, "a", "2", 0, None), "it exists"
    assert put(KIND, "a", "2", 1, None)
    assert not put(KIND, "a", "3", 1, None), "somebody was faster"
    assert put(KIND, "a", "3", None, None)
    found = store.backend.document(KIND, "a")
    assert found is not None
    assert (found.body, found.version) == ("3", 3)


def test_deleting_needs_the_version_too(store: Store) -> None:
    put = store.backend.put
    put(KIND, "a", "1", None, None)
    assert not put(KIND, "a", None, 7, None)
    assert put(KIND, "a", None, 1, None)
    assert store.backend.document(KIND, "a") is None
    assert put(KIND, "a", None, None, None), "gone already: that is what was asked for"
    assert put(KIND, "a", "again", 0, None)


def test_documents_are_listed_by_name_and_kind(store: Store) -> None:
    for name in ("b", "é", "a", "B", "c/d"):
        store.backend.put(KIND, name, "1", None, None)
    store.backend.put(OTHER, "z", "1", None, None)
    names = [document.name for document in store.backend.documents(KIND, 100, None)]
    assert names == ["B", "a", "b", "c/d", "é"]
    assert [d.name for d in store.backend.documents(KIND, 2, None)] == ["B", "a"]
    assert [d.name for d in store.backend.documents(KIND, 2, "a")] == ["b", "c/d"]
    assert store.backend.documents(UNUSED, 10, None) == []


def test_a_document_expires(store: Store, advance: Advance) -> None:
    store.backend.put(OTHER, "a", "1", 0, 10.0)
    store.backend.put(OTHER, "b", "1", 0, None)
    advance(9)
    assert not store.backend.put(OTHER, "a", "2", 0, 10.0), "still held"
    advance(2)
    assert store.backend.document(OTHER, "a") is None
    assert [d.name for d in store.backend.documents(OTHER, 10, None)] == ["b"]
    assert store.backend.put(OTHER, "a", "2", 0, 10.0)
    assert store.backend.document(OTHER, "a") is not None


def test_putting_again_moves_the_end(store: Store, advance: Advance) -> None:
    store.backend.put(OTHER, "a", "1", 0, 10.0)
    advance(8)
    assert store.backend.put(OTHER, "a", "1", 1, 10.0)
    advance(8)
    assert store.backend.document(OTHER, "a") is not None
    assert store.backend.put(OTHER, "a", "1", None, None)
    advance(1000)
    assert store.backend.document(OTHER, "a") is not None


def test_documents_of_any_text(store: Store) -> None:
    body = '{"text": "\\u0000 \\ud83d\\ude00 \' \\" \\\\ %s {0}"}'
    store.backend.put(KIND, "it's {odd} %s :x", body, None, None)
    found = store.backend.document(KIND, "it's {odd} %s :x")
    assert found is not None
    assert found.body == body


def test_a_bucket_gives_its_burst_and_then_its_rate(store: Store, advance: Advance) -> None:
    take = store.backend.take
    assert [take("qps", 1, 0.01, 3) for _ in range(3)] == [0.0, 0.0, 0.0]
    wait = take("qps", 1, 0.01, 3)
    assert wait == pytest.approx(100, abs=5)
    advance(wait + 1)
    assert take("qps", 1, 0.01, 3) == 0.0
    assert take("qps", 1, 0.01, 3) > 90, "what was refused was not taken"
    assert take("other", 1, 0.01, 3) == 0.0


def test_a_bucket_holds_no_more_than_its_burst(store: Store, advance: Advance) -> None:
    store.backend.take("qps", 5, 1.0, 5)
    advance(1000)
    assert store.backend.take("qps", 5, 0.01, 5) == 0.0
    assert store.backend.take("qps", 1, 0.01, 5) > 0
