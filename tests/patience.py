"""Waiting for what other processes do: until it is so, and not for a time that should be enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 60.0  # seconds; nothing is proven by it, it only ends a test that hangs
LOOK_SECONDS = 0.02

T = TypeVar("T")


def eventually(condition: Callable[[], T], what: object = None, within: float = PATIENCE) -> T:
    """What the condition answers as soon as it is true. `what` (or what it answers) is shown when
    it never is."""
    end = time.monotonic() + within
    while True:
        answer = condition()
        if answer:
            return answer
        shown = what() if callable(what) else what
        assert time.monotonic() < end, f"not within {within:g} s: {shown or condition}"
        time.sleep(LOOK_SECONDS)
