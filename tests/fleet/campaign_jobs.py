"""The job of the campaigns: its result names the claim that it ran under."""

from __future__ import annotations

import os
import time

from jobs import Data, note

from sprat.worker.job import current_job


def run(data: Data) -> list[object]:
    """Takes `seconds`; fails before the attempt that the payload names."""
    job = current_job()
    note(data, "start", job.fence, os.getpid(), time.time())
    time.sleep(data["seconds"])
    if job.attempt < data.get("attempt", 1):
        raise ValueError("not yet")
    note(data, "end", job.fence)
    return [job.item.id, job.fence]
