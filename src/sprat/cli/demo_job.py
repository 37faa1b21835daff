"""The job of `sprat demo`: notes that it starts, takes a moment, and answers or fails."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def work(data: dict[str, Any]) -> dict[str, int]:
    """Square a number. A line in the log for every start: the demo counts them afterwards."""
    log = os.open(data["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, f"{data['number']}\n".encode())
    os.close(log)
    time.sleep(data["seconds"])
    if data["bad"]:
        raise ValueError("this one never works")
    return {"square": data["number"] ** 2}
