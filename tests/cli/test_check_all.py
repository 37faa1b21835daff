"""`sprat check --all`: one pass over every pool, which a machine runs when it has started."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sprat.cli import check
from sprat.core.errors import SpratError, StoreUnavailable
from sprat.fleet import checker
from sprat.store.store import Store

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """How many workers were to be launched, by pool. "full" cannot launch any."""
    found: dict[str, int] = {}

    def launch(_: Store, pool: str, __: object, ids: tuple[str, ...], *___: object) -> None:
        if pool == "full":
            raise SpratError("no room")
        found[pool] = len(ids)

    monkeypatch.setattr(checker, "launch", launch)
    return found


def test_every_pool_is_checked_and_a_failure_does_not_stop_the_others(
    sprat: Command, store: Store, launched: dict[str, int]
) -> None:
    for name in ("full", "more"):
        store.pool(name).configure(command=["true"], max_workers=3)
    for name in ("bare", "full", "more", "numbers"):
        store.pool(name).push_many([{"n": 1}] * 5)
    answer = sprat("check", "--all")
    assert answer.code == 1
    assert launched == {"more": 3, "numbers": 2}
    lines = answer.out.splitlines()
    assert lines[0] == "bare: skipped, it has no handler and no command"
    assert [line for line in lines if line.startswith("launched")] == [
        "launched 3 workers",
        "launched 2 workers",
    ]
    assert answer.err == "sprat: pool full: no room\n"


def test_the_answer_as_json(sprat: Command, store: Store) -> None:
    store.pool("bare").push({})
    store.pool("numbers").push({"n": 1})
    answer = sprat("check", "--all", "--dry-run", "--json")
    assert answer.code == 0
    assert [(one["pool"], one["spawned"]) for one in answer.data["pools"]] == [("numbers", 1)]
    assert answer.data["skipped"] == {"bare": "it has no handler and no command"}
    assert answer.data["failed"] == {}


def test_a_pool_that_a_controller_scales_is_left_to_it(
    sprat: Command, store: Store, launched: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.pool("numbers").push({"n": 1})
    monkeypatch.setattr(check.controller_lease, "is_led", lambda *_: True)
    assert sprat("check", "--all").out == "numbers: skipped, a controller scales it\n"
    assert launched == {}


def test_a_store_that_comes_up_late_is_waited_for(
    sprat: Command, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, pauses = check.open_existing, []

    def late(url: str | None) -> Store:
        if len(pauses) < 3:
            raise StoreUnavailable("it is not there yet")
        return opened(url)

    monkeypatch.setattr(check, "open_existing", late)
    monkeypatch.setattr(time, "sleep", pauses.append)
    assert sprat("check", "--all", "--wait", "60").code == 0
    assert pauses == [check.RETRY_SECONDS] * 3
    pauses.clear()
    answer = sprat("check", "numbers")
    assert (answer.code, pauses) == (1, [])
    assert answer.err == "sprat: it is not there yet\n"


@pytest.mark.parametrize("words", [(), ("numbers", "--all")])
def test_one_pool_or_all(sprat: Command, store: Store, place: Path, words: tuple[str, ...]) -> None:
    answer = sprat("check", *words)
    assert (answer.code, answer.err) == (2, "sprat: name one POOL, or use --all\n")
