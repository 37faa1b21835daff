"""What the slo policy notes for its next decision: typed, versioned, and never in its way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fleets_seen import NOW, pool_settings, seen
from hypothesis import given
from hypothesis import strategies as st

from sprat.core.model import Stats
from sprat.scaling import policies
from sprat.scaling.slo.memory import VERSION, Memory, read, write

TARGET = pool_settings("slo", 0, 100, wait_seconds=30, cold_start_seconds=40)
STATS = Stats(seconds=600.0, starts=60, finished=60, run_mean=10.0, run_scv=1.0)


def after_passes(passes: int = 30) -> dict[str, Any]:
    """The notes of as many passes, as a store gives them back."""
    memory: dict[str, Any] = {}
    for n in range(passes):
        before = seen(n, busy=5, starting=2, now=NOW + 30.0 * n, stats=STATS, memory=memory)
        memory = json.loads(json.dumps(policies.decide(before, TARGET).memory))
    return memory


NOTES = after_passes()


def test_notes_survive_the_store() -> None:
    assert NOTES["version"] == VERSION
    assert set(NOTES) >= {"starts", "runs", "arrivals", "loads", "margin", "shadows"}
    assert write(read(NOTES)) == NOTES


def test_nothing_to_note_is_nothing() -> None:
    assert write(Memory()) == {}
    assert read({}) == Memory()


@pytest.mark.parametrize("version", [None, 0, VERSION + 1, "1"])
def test_notes_of_another_version_are_forgotten(version: Any) -> None:
    assert read({**NOTES, "version": version}) == Memory()


def test_notes_without_names_are_forgotten() -> None:
    """As they were kept before they had a version."""
    assert read({"margin": [0.5, NOW, 100.0], "starts": [41.0], "starts_at": NOW}) == Memory()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to everything inside of JSON."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    found = [path] if path else []
    if isinstance(value, dict | list):
        for key, part in inside if value else ():
            found += places(part, (*path, key)) if isinstance(part, dict | list) else [(*path, key)]
    return found


odd = st.sampled_from([None, "x", [], {}, [1], True, -1.0, -5, 1e300, float("nan"), float("inf")])


@given(st.sampled_from(places(NOTES)), odd)
def test_damaged_notes_do_not_keep_it_from_deciding(path: tuple[Any, ...], value: Any) -> None:
    damaged = json.loads(json.dumps(NOTES))
    place = damaged
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    before = seen(9, busy=5, now=NOW + 2000.0, stats=STATS, memory=damaged)
    decision = policies.decide(before, TARGET)
    assert decision.desired >= 5
    assert read(decision.memory) != Memory()
