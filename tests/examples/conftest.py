"""The `example` fixture: an example in its own directory, and proof that nobody stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from example import Example


@pytest.fixture
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Example]:
    name = getattr(request, "param", None) or request.module.NAME
    made = Example(name, tmp_path)
    try:
        yield made
        made.until_gone()
        assert "Traceback" not in (made.log.read_text() if made.log.exists() else "")
    finally:
        made.end()
