"""What the pods of the tests do. The image that they run has this file in it."""

from __future__ import annotations

import os
import time


def work(payload: dict[str, float]) -> dict[str, object]:
    """Take some time, and say who did it."""
    time.sleep(payload.get("seconds", 0.0))
    return {"number": payload["number"], "pod": os.environ.get("SPRAT_PLACE")}
