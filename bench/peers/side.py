"""The side of a measurement that runs in the environment of the measured queue.

Imports nothing of ours. Every job leaves eight bytes in one file: how long it took to get there, or
zero. So the file's size says how many jobs ran, whichever processes they ran in.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

URL = os.environ.get("BENCH_URL", "")
IS_WORKER = bool(os.environ.get("BENCH_WORKER"))
_marks: list[int] = []


def mark(sent: float) -> None:
    """What every measured job does."""
    if not _marks:
        _marks.append(os.open(os.environ["BENCH_MARKS"], os.O_WRONLY | os.O_APPEND))
    os.write(_marks[0], struct.pack("d", time.monotonic() - sent if sent else 0.0))


def main(name: str, order: str, *rest: str) -> None:
    """Run a verb of the module `name`; print what it cost."""
    peer = importlib.import_module(name)
    if order == "work":
        peer.work(*rest)
        return
    wanted = json.loads(order)
    verb = getattr(peer, VERBS.get(wanted["do"], wanted["do"]), None)
    print(json.dumps({} if verb is None else DOINGS[wanted["do"]](verb, wanted)))


def call(verb: Callable[..., Any], *args: Any) -> None:
    answer = verb(*args)
    if asyncio.iscoroutine(answer):
        loop().run_until_complete(answer)


def loop() -> asyncio.AbstractEventLoop:
    """One for the whole process: connections live on it."""
    if not _loops:
        _loops.append(asyncio.new_event_loop())
    return _loops[0]


_loops: list[asyncio.AbstractEventLoop] = []


def _setup(verb: Callable[..., Any], order: dict[str, Any]) -> dict[str, float]:
    call(verb)
    return {}


def _push(verb: Callable[..., Any], order: dict[str, Any]) -> dict[str, float]:
    call(verb, 0.0)  # the first one connects
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(order["n"] - 1):
        call(verb, 0.0)
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def _bulk(verb: Callable[..., Any], order: dict[str, Any]) -> dict[str, float]:
    call(verb, 1)
    cpu, wall = time.process_time(), time.perf_counter()
    call(verb, order["n"] - 1)
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def _late(verb: Callable[..., Any], order: dict[str, Any]) -> dict[str, float]:
    """Push one job after the other to a worker that has nothing to do."""
    pause = random.Random(1)
    for _ in range(order["n"]):
        time.sleep(pause.uniform(0.02, 0.05))
        call(verb, time.monotonic())
    return {}


DOINGS = {"setup": _setup, "push": _push, "bulk": _bulk, "late": _late}
VERBS = {"late": "push"}

if __name__ == "__main__":
    main(*sys.argv[1:])
