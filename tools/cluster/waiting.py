"""Waits until something is so."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120.0


def until(
    what: str, condition: Callable[[], object], check: Callable[[], object] = lambda: None
) -> None:
    """Wait for the condition. `check` raises when there is no point in waiting any longer."""
    end = time.monotonic() + PATIENCE
    while not condition():
        check()
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come within {PATIENCE:.0f} seconds")
        time.sleep(0.1)
