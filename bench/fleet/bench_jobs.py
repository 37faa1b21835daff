"""The jobs that the fleet's benchmarks have workers run: trivial, so that all else is ours."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False  # `typing` would cost each worker 5 ms
if TYPE_CHECKING:
    from typing import Any


def noop(data: Any) -> None:
    """Nothing."""


def stamp(data: dict[str, Any]) -> None:
    """Note when this started."""
    _note(data["notes"], f"{data['n']} {time.monotonic_ns()} {os.getpid()}")


def stuck(data: dict[str, Any]) -> None:
    """Note when this started; the first time, be busy until killed."""
    now = time.monotonic_ns()
    with open(data["notes"], encoding="utf-8") as notes:
        is_first = not any(line.startswith(f"{data['n']} ") for line in notes)
    _note(data["notes"], f"{data['n']} {now} {os.getpid()}")
    if is_first:
        time.sleep(20.0)


def _note(path: str, line: str) -> None:
    """One write, so that lines of several workers do not mix."""
    notes = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(notes, f"{line}\n".encode())
    os.close(notes)
