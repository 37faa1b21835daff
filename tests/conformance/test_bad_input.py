"""Bad input: refused in one sentence, and nothing has changed."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sprat.core.errors import InvalidInput
from sprat.core.model import Counts, WorkerRecord, WorkerRegistration
from sprat.core.payload import MAX_BYTES, MAX_CAPABILITIES, MAX_METADATA_BYTES, MAX_NAME_CHARS
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.store import Store


def endless() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


NOT_JSON: Mapping[str, object] = {
    "nan": float("nan"),
    "infinity": [1, float("inf")],
    "tuple as key": {(1, 2): "one"},
    "two keys with the same text": {1: "one", "1": "uno"},
    "bytes": b"bytes",
    "bytes inside": {"a": [b"x"]},
    "object": object(),
    "complex": 1j,
    "contains itself": endless(),
    "too deep": deep(100_000),
    "65 levels": deep(64),
    "65 levels with a date": [deep(63), datetime.date(2026, 1, 1)],
    "lone surrogate": "\ud800",
    "lone surrogate as key": {"\udfff": 1},
    "too large": "x" * (MAX_BYTES + 1),
    "too large in bytes": "ü" * (MAX_BYTES // 2 + 1),
}
every_bad_value = pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(InvalidInput) as caught:
        call()
    sentence = str(caught.value)
    assert sentence
    assert "\n" not in sentence
    assert len(sentence) < 500
    assert isinstance(caught.value, ValueError)
    return sentence


@every_bad_value
def test_payload_that_is_not_json_is_refused(pool: WorkPool, value: object) -> None:
    assert "payload" in refusal(lambda: pool.push(value))
    refusal(lambda: pool.push_many(["good", value]))
    assert pool.counts() == Counts()


@pytest.mark.parametrize("many", ["abc", b"abc", 5, None])
def test_what_is_no_list_of_payloads_is_refused(pool: WorkPool, many: Any) -> None:
    assert "a list of payloads" in refusal(lambda: pool.push_many(many))
    assert pool.counts() == Counts()


@every_bad_value
def test_result_that_is_not_json_is_refused(
    pool: WorkPool, worker: WorkerRecord, value: object
) -> None:
    pool.push("work")
    item = pool.claim("w1")
    assert item is not None
    assert "result" in refusal(lambda: pool.complete(item, value))
    assert pool.get(item) == item


@every_bad_value
def test_checkpoint_that_is_not_json_is_refused(
    pool: WorkPool, worker: WorkerRecord, value: object
) -> None:
    pool.push("work")
    item = pool.claim("w1")
    assert item is not None
    assert "checkpoint" in refusal(lambda: pool.save_checkpoint(item, value))
    assert pool.get(item) == item


def test_64_levels_are_taken_everywhere(pool: WorkPool, worker: WorkerRecord) -> None:
    value = deep(63)
    pool.push(value)
    item = pool.claim("w1")
    assert item is not None
    assert item.data == value
    assert pool.save_checkpoint(item, value)
    assert pool.complete(item, value)
    kept = pool.get(item)
    assert (kept.data, kept.checkpoint, kept.result) == (value, value, value)


def test_largest_payload_is_taken(pool: WorkPool) -> None:
    item_id = pool.push("x" * (MAX_BYTES - 2))
    assert len(pool.get(item_id).data) == MAX_BYTES - 2


@pytest.mark.parametrize(
    "name", ["", "a/b", "a b", "ü", "a\0", "..", "../x", "x" * (MAX_NAME_CHARS + 1), None, 3, b"a"]
)
def test_pool_name_that_is_no_name_is_refused(store: Store, name: Any) -> None:
    refusal(lambda: store.pool(name))
    refusal(lambda: store.workers.register(WorkerRegistration(worker_id="w", pool_id=name or "/")))
    assert store.pools() == []
    assert store.workers.list() == []


BAD_OPTIONS: tuple[dict[str, object], ...] = (
    {"delay": -1},
    {"delay": float("nan")},
    {"delay": float("inf")},
    {"delay": "5"},
    {"delay": True},
    {"delay": None},
    {"delay": 1e12},
    {"max_retries": 0},
    {"max_retries": -1},
    {"max_retries": 1001},
    {"max_retries": True},
    {"max_retries": 3.0},
    {"max_retries": "3"},
    {"max_attempts": 0},
    {"priority": 1 << 31},
    {"priority": -(1 << 31) - 1},
    {"priority": False},
    {"priority": 1.5},
    {"tenant": ""},
    {"tenant": 5},
    {"tenant": "a\nb"},
    {"tenant": "x" * (MAX_NAME_CHARS + 1)},
    {"tenant": "\ud800"},
    {"group": ""},
    {"group": ["gpu"]},
    {"key": ""},
    {"key": b"k"},
    {"key": "\0"},
)


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=str)
def test_option_that_makes_no_sense_is_refused(pool: WorkPool, options: dict[str, Any]) -> None:
    refusal(lambda: pool.push("work", **options))
    if "key" not in options:
        refusal(lambda: pool.push_many(["work"], **options))
    assert pool.counts() == Counts()


@pytest.mark.parametrize("n", [-1, 1001, True, 1.0, "1", None])
def test_number_of_claims_that_makes_no_sense_is_refused(
    pool: WorkPool, worker: WorkerRecord, n: Any
) -> None:
    pool.push("work")
    refusal(lambda: pool.claim_many("w1", n))
    assert pool.counts().claimed == 0


@pytest.mark.parametrize("worker_id", ["", None, 5, "a\nb", "x" * (MAX_NAME_CHARS + 1), b"w"])
def test_worker_id_that_is_no_id_is_refused(store: Store, pool: WorkPool, worker_id: Any) -> None:
    pool.push("work")
    refusal(lambda: pool.claim(worker_id))
    refusal(lambda: pool.release_by_worker(worker_id))
    refusal(lambda: store.workers.get(worker_id))
    refusal(lambda: store.workers.heartbeat(worker_id))
    refusal(lambda: store.workers.update_status(worker_id, "lost"))
    refusal(lambda: store.workers.register(WorkerRegistration(worker_id=worker_id)))
    assert store.workers.list() == []
    assert pool.counts().claimed == 0


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), "5", True])
def test_delay_of_a_failure_that_makes_no_sense_is_refused(
    pool: WorkPool, worker: WorkerRecord, delay: Any
) -> None:
    pool.push("work")
    item = pool.claim("w1")
    assert item is not None
    refusal(lambda: pool.fail(item, "no", delay=delay))
    assert pool.get(item) == item


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "5", True])
def test_duration_of_a_run_that_makes_no_sense_is_refused(
    pool: WorkPool, worker: WorkerRecord, seconds: Any
) -> None:
    pool.push("work")
    item = pool.claim("w1")
    assert item is not None
    refusal(lambda: pool.complete(item, seconds=seconds))
    refusal(lambda: pool.failure(item, seconds=seconds))
    assert pool.get(item) == item


def test_failure_is_transient_or_for_good(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("work")
    item = pool.claim("w1")
    assert item is not None
    refusal(lambda: pool.fail(item, "no", transient=True, poison=True))
    assert pool.get(item) == item


def test_error_of_any_kind_is_kept_as_text(pool: WorkPool, worker: WorkerRecord) -> None:
    errors = (ValueError("bad"), "zero \0 byte", "lone \ud800", "x" * 100_000, 5)
    for error in errors:
        item_id = pool.push("work", max_retries=1)
        item = pool.claim("w1")
        assert item is not None
        assert pool.fail(item, error)
        text = pool.get(item_id).error
        assert text
        assert "\0" not in text
        assert len(text) < 21_000


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), "half", True])
def test_progress_is_a_fraction(pool: WorkPool, worker: WorkerRecord, fraction: Any) -> None:
    pool.push("work")
    item = pool.claim("w1")
    assert item is not None
    refusal(lambda: pool.report_progress(item, fraction))
    assert pool.get(item) == item


@pytest.mark.parametrize("limit", [0, -1, 10_001, True, "5"])
def test_page_size_that_makes_no_sense_is_refused(pool: WorkPool, limit: Any) -> None:
    refusal(lambda: pool.items(limit=limit))


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant_limit": -1},
        {"tenant_limit": True},
        {"tenant_limit": 1.5},
        {"tenant_limits": 5},
        {"tenant_limits": {"a": -1}},
        {"tenant_limits": {"": 1}},
        {"tenant_limits": {5: 1}},
        {"tenant_limits": {"a": None}},
        {"keep_done_seconds": -1},
        {"keep_done_seconds": "week"},
        {"no_such_setting": 1},
    ],
    ids=str,
)
def test_setting_that_makes_no_sense_is_refused(pool: WorkPool, changes: dict[str, Any]) -> None:
    refusal(lambda: pool.configure(**changes))
    assert pool.state().version == 0


@pytest.mark.parametrize("seconds", [-1, float("nan"), "5", True])
def test_seconds_that_make_no_sense_are_refused(store: Store, pool: WorkPool, seconds: Any) -> None:
    refusal(lambda: pool.pause(seconds))
    refusal(lambda: pool.wait(seconds=seconds))
    refusal(lambda: pool.stats(seconds))
    refusal(lambda: pool.history(seconds))
    refusal(lambda: store.workers.reap(threshold_seconds=seconds))
    assert not pool.state().paused


@pytest.mark.parametrize(
    "about",
    [
        {"lease_seconds": 0},
        {"lease_seconds": -5},
        {"lease_seconds": float("nan")},
        {"lease_seconds": 1e9},
        {"lease_seconds": True},
        {"capabilities": "gpu"},
        {"capabilities": [5]},
        {"capabilities": [""]},
        {"metadata": {"a": float("nan")}},
        {"metadata": {(1, 2): 3}},
        {"pool_id": "a/b"},
    ],
    ids=str,
)
def test_registration_that_makes_no_sense_is_refused(store: Store, about: dict[str, Any]) -> None:
    refusal(lambda: store.workers.register(WorkerRegistration(worker_id="w1", **about)))
    assert store.workers.get("w1") is None


def test_unknown_worker_status_is_refused(store: Store, worker: WorkerRecord) -> None:
    refusal(lambda: store.workers.update_status("w1", "asleep"))
    found = store.workers.get("w1")
    assert found is not None
    assert found.status == "active"


def test_metadata_that_is_not_json_is_refused(store: Store, worker: WorkerRecord) -> None:
    refusal(lambda: store.workers.heartbeat("w1", {"a": b"x"}))
    assert store.workers.get("w1") == worker


def test_metadata_does_not_grow_without_bound(store: Store, worker: WorkerRecord) -> None:
    """The sum of all heartbeats counts, in a new registration what it brings."""
    large = "x" * (MAX_METADATA_BYTES * 5 // 8)
    store.workers.heartbeat("w1", {"first": large})
    before = store.workers.get("w1")
    assert "metadata" in refusal(lambda: store.workers.heartbeat("w1", {"second": large}))
    assert store.workers.get("w1") == before
    again = WorkerRegistration(worker_id="w1", metadata={"first": large, "second": large})
    refusal(lambda: store.workers.register(again))
    store.workers.heartbeat("w1", {"first": 1, "second": large})
    found = store.workers.get("w1")
    assert found is not None
    assert found.metadata == {"first": 1, "second": large}


def test_more_capabilities_than_a_worker_may_have_are_refused(store: Store) -> None:
    able = tuple(f"c{n}" for n in range(MAX_CAPABILITIES + 1))
    worker = WorkerRegistration(worker_id="w1", capabilities=able)
    assert "capabilities" in refusal(lambda: store.workers.register(worker))
    store.workers.register(worker.replace(capabilities=able[1:]))


@pytest.mark.parametrize(
    "url", ["", "fleet.db", "mysql://x", "memory://name", "sqlite://x.db", "sqlite:///", None, 5]
)
def test_url_that_names_no_store_is_refused(url: Any) -> None:
    refusal(lambda: open_store(url))
