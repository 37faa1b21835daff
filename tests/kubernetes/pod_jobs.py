"""What the pods of the tests do. The image that they run has this file in it."""

from __future__ import annotations

import os
import time

import sprat


def work(payload: dict[str, float]) -> dict[str, object]:
    """Take some time, at the first attempt perhaps another, and report where it ran."""
    seconds = payload.get("seconds", 0.0)
    if sprat.current_job().attempt == 1:
        seconds = payload.get("first_seconds", seconds)
    time.sleep(seconds)
    return {"number": payload["number"], "pod": os.environ.get("SPRAT_PLACE")}
