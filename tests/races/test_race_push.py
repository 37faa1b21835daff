"""Eight processes push with the same key: one item comes of it."""

from __future__ import annotations

from processes import Together, at_once
from worlds import World

from sprat.core.errors import KeyConflict
from sprat.store.open_store import open_store

PROCESSES = 8
ROUNDS = 12


def push(place: int, together: Together, url: str, own: bool) -> list[str | None]:
    """The ids, None for a conflict; `own`: with a payload that no other process has."""
    ids: list[str | None] = []
    with open_store(url) as store:
        pool = store.pool("papers")
        for number in range(ROUNDS):
            together()
            try:
                ids.append(pool.push({"by": place if own else "all"}, key=f"k{number}"))
            except KeyConflict:
                ids.append(None)
    return ids


def test_same_key_and_payload_is_one_item(shared: World, shared_url: str) -> None:
    logs = at_once(PROCESSES, push, shared_url, False)
    for ids in zip(*logs, strict=True):
        assert len(set(ids)) == 1
    stored = shared.open().pool("papers").items()
    assert [item.id for item in stored] == logs[0]


def test_same_key_with_other_payloads_has_one_winner(shared: World, shared_url: str) -> None:
    logs = at_once(PROCESSES, push, shared_url, True)
    stored = shared.open().pool("papers").items()
    assert len(stored) == ROUNDS
    for item, ids in zip(stored, zip(*logs, strict=True), strict=True):
        assert ids.count(None) == PROCESSES - 1
        assert ids.index(item.id) == item.data["by"]
