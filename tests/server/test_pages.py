"""Pages: bounded in bytes as well as in number, and complete when they are followed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from houses import Client, House

from sprat.core.errors import UnknownItem
from sprat.server import pages
from sprat.store.open_store import open_store

JOBS = "/api/v1/pools/papers/jobs"
SIZES = [10, 3000, 10, 900, 900, 10, 5000, 5000] + [10] * 40 + [900] * 3


@pytest.fixture
def acme(house: House, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Jobs of a tenant, some of them larger than half a page. No look reads many of them."""
    monkeypatch.setattr(pages, "MAX_PAGE_BYTES", 4000)
    client = house.client("admin", "acme")
    for size in SIZES:
        client("POST", JOBS, {"data": "x" * size})
    backend = house.store.backend
    for verb in ("items", "find", "documents"):
        monkeypatch.setattr(backend, verb, small_steps(getattr(backend, verb)))
    return client


def small_steps(verb: Any) -> Any:
    def asked(*arguments: Any) -> Any:
        assert arguments[-2] <= pages.STEP + 1, "the limit"
        return verb(*arguments)

    return asked


def followed(client: Client, path: str, limit: int) -> list[list[int]]:
    """The sizes of the jobs of each page, from the first page to the last."""
    found: list[list[int]] = []
    after = ""
    while True:
        reply = client("GET", f"{path}limit={limit}{after}")
        assert reply.status == 200
        size = sum(len(json.dumps(job, separators=(",", ":"))) for job in reply.body["jobs"])
        assert size <= 4000 or len(reply.body["jobs"]) == 1
        found.append([len(job["data"]) for job in reply.body["jobs"]])
        if reply.body["next"] is None:
            return found
        after = f"&after={reply.body['next']}"


@pytest.mark.parametrize("limit", [1, 7, 16, 1000])
@pytest.mark.parametrize("path", [f"{JOBS}?", f"{JOBS}?status=pending&older=0&"])
def test_a_page_ends_where_it_is_too_large_and_next_goes_on(
    house: House, acme: Client, path: str, limit: int
) -> None:
    found = followed(acme, path, limit)
    assert [size for page in found for size in page] == SIZES
    assert max(map(len, found)) <= limit
    assert len(found) > 5


@pytest.mark.parametrize("limit", [1, 20, 1000])
def test_the_http_store_puts_large_pages_together(
    house: House, acme: Client, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPRAT_API_KEY", house.keys["admin", "acme"])
    with open_store(house.served.url) as store:
        pool = store.pool("papers")
        items = pool.items(limit=limit)
        assert [len(item.data) for item in items] == SIZES[:limit]
        assert [item.id for item in pool.items(limit=limit, older=0.0)] == [i.id for i in items]
        for name in "abcdef":
            store.backend.put("scaling", name, f'"{name * 1500}"', None, None)
        found = store.backend.documents("scaling", 5, None)
        assert [one.name for one in found] == ["a", "b", "c", "d", "e"]


def test_a_filter_changes_jobs_without_reading_many_at_a_time(house: House, acme: Client) -> None:
    reply = acme("POST", "/api/v1/pools/papers/cancel", {"older": 0})
    assert (reply.status, reply.body) == (200, {"changed": len(SIZES), "next": None})


def test_a_page_ends_at_a_job_that_was_just_purged(house: House, acme: Client) -> None:
    read = pages.items(house.store.backend, "acme.papers", None)

    def purged(most: int, after: str | None) -> Any:
        if after is not None:
            raise UnknownItem("gone")
        return read(most, after)

    texts, following = pages.page(purged, 1000, None, lambda item: item.id)
    assert (len(texts), f'"{following}"'.encode()) == (pages.STEP, texts[-1])


def test_a_decision_has_small_inputs(house: House) -> None:
    decision = {
        "pool": "papers",
        "policy": "x",
        "direction": "up",
        "reason": "r",
        "current": 0,
        "desired": 0,
        "launch": 0,
        "max_workers": 1,
        "start_deadline_seconds": 60,
        "inputs": {"a": "x" * 100_000},
    }
    record = {"version": 0, "decision": decision}
    reply = house.client("controller", "acme")("POST", "/api/v1/store/record", record)
    assert (reply.status, reply.body["error"]) == (422, "invalid_input")
