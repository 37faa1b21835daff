"""The vigil: one nest sleeps, the others ring it; nothing of it stays behind."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

import pytest

from sprat.launchers.vigil import Vigil


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_vigil_leaves_no_file_behind(place: Path) -> None:
    assert Vigil("sqlite:///a.db", "p").keep(0.01, lambda: False)
    assert list(place.iterdir()) == []


def test_the_second_rings_and_the_first_wakes(place: Path) -> None:
    asleep = threading.Event()
    woke: list[bool] = []

    def sleeps() -> bool:
        asleep.set()
        return False

    first = threading.Thread(target=lambda: woke.append(Vigil("u", "p").keep(60.0, sleeps)))
    first.start()
    assert asleep.wait(20.0)
    assert not Vigil("u", "p").keep(60.0, lambda: False)
    first.join(20.0)
    assert woke == [True]
    assert list(place.iterdir()) == []


def test_where_no_file_can_be_made_each_keeps_a_vigil_of_its_own(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(place / "not there"))
    began = time.monotonic()
    assert Vigil("u", "p").keep(0.05, lambda: False)
    assert time.monotonic() - began >= 0.05
