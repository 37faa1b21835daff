"""Fixtures: a place where controllers, servers and workers are real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from controllers import Place
from worlds import check_counts


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    try:
        yield place
        check_counts(place.pool)
    finally:
        place.close()
