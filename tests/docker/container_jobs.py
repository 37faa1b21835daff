"""Jobs that run in containers: each says in /log that it began, and that it ended."""

from __future__ import annotations

import os
import time
from typing import Any

LOG = "/log/jobs"


def run(data: dict[str, Any]) -> dict[str, Any]:
    say(f"began {data['n']}")
    time.sleep(data.get("seconds", 0.0))
    while data.get("until") and not os.path.exists(f"/log/{data['until']}"):
        time.sleep(0.02)
    if data.get("megabytes"):
        bytearray(data["megabytes"] << 20)
    say(f"ended {data['n']}")
    return {"n": data["n"], "place": os.environ["SPRAT_PLACE"]}


def say(line: str) -> None:
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(log, f"{line}\n".encode())
    os.close(log)
