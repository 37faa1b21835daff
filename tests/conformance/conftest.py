"""Here every test also runs over an orchestrator that keeps its data in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from worlds import CONFORMING, World


@pytest.fixture(params=list(CONFORMING))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = CONFORMING[request.param](tmp_path)
    yield world
    world.close()
