"""The side of a measurement that runs in its own process: an order in, JSON figures out.

Runs in the environment of the measured queue, so it imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

WARM_UP = 50


class Queue:
    """One way to use one library. `ways` names the functions that run n no-op jobs."""

    ways: dict[str, Callable[[int], None]]

    def __init__(self, place: str, synced: bool | None) -> None:
        """Open it in this directory. Every commit synced, none that need not be, or (None)
        as the library comes."""
        raise NotImplementedError

    def settings(self) -> str:
        raise NotImplementedError

    def push_bulk(self, n: int, how: str) -> None:
        """Push n items the best way there is; `how` names another one, or the way of running
        that they are for."""
        raise NotImplementedError

    def push(self, number: int) -> None:
        raise NotImplementedError

    def take(self, seconds: float) -> int | None:
        """Wait for one item, the way the library means it; take and settle it."""
        raise NotImplementedError

    def remaining(self) -> int:
        raise NotImplementedError


def sqlite_settings(execute: Callable[[str], Any]) -> str:
    mode = next(iter(execute("PRAGMA journal_mode")))[0]
    level = next(iter(execute("PRAGMA synchronous")))[0]
    return f"{mode.upper()}, synchronous {('OFF', 'NORMAL', 'FULL', 'EXTRA')[level]}"


def jobs(queue: Queue, order: dict[str, Any]) -> dict[str, Any]:
    n, way = order["n"], queue.ways[order["way"]]
    warm_up = min(n, 100 if order["way"] == "batched" else WARM_UP)
    queue.push_bulk(n + warm_up, order["way"])
    way(warm_up)
    cpu, wall = time.process_time(), time.perf_counter()
    way(n)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert queue.remaining() == 0, f"{queue.remaining()} items were not run"
    return {"cpu_us": cpu / n * 1e6, "per_second": n / wall, "settings": queue.settings()}


def bulk(queue: Queue, order: dict[str, Any]) -> dict[str, Any]:
    n = order["n"]
    queue.push_bulk(10, order["how"])
    cpu, wall = time.process_time(), time.perf_counter()
    queue.push_bulk(n, order["how"])
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert queue.remaining() == n + 10
    return {"cpu_us": cpu / n * 1e6, "per_second": n / wall, "settings": queue.settings()}


def wait(queue: Queue, order: dict[str, Any]) -> dict[str, Any]:
    """Idle for a while, then note when each item arrived, until told to stop."""
    arrived: dict[int, int] = {}
    idle: list[float] = []
    stopped = threading.Event()

    def watch() -> None:
        time.sleep(1.0)
        cpu, wall = time.process_time(), time.perf_counter()
        time.sleep(order["idle_seconds"])
        idle.append((time.process_time() - cpu) / (time.perf_counter() - wall) * 100)
        print("ready", flush=True)
        sys.stdin.readline()
        stopped.set()

    threading.Thread(target=watch).start()
    while not stopped.is_set():
        number = queue.take(0.5)
        if number is not None:
            arrived[number] = time.monotonic_ns()
    return {"idle_percent": idle[0], "arrived": arrived, "settings": queue.settings()}


def push(queue: Queue, order: dict[str, Any]) -> dict[str, Any]:
    """Push one item for each number on standard input; when each push began and returned."""
    times: dict[int, tuple[int, int]] = {}
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.monotonic_ns()
        queue.push(int(line))
        times[int(line)] = began, time.monotonic_ns()
    return {"pushed": times}


def main(make: Callable[[str, bool | None], Queue]) -> None:
    order = json.loads(sys.argv[1])
    queue = make(order["place"], order["synced"])
    figures = {"jobs": jobs, "bulk": bulk, "wait": wait, "push": push}[order["do"]](queue, order)
    print(json.dumps(figures))
