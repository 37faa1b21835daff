"""Claim and complete over HTTP, and a thousand workers that wait: writes docs/benchmarks/http.md.

`python -m bench.http`; with `--quick` a tenth of the work, printed only.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import sprat
from bench import environment
from bench.http.server import Running, running
from bench.measure import QUICK, percentile, scaled, table

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "http.md"
CLIENTS = 4
WAITERS = scaled(1000)
ROUNDS = 4  # of long polls by every waiter
POLL_SECONDS = 5.0


def load(processes: int, jobs: int) -> list[Any]:
    """Four workers at once, each settling and claiming one job a request."""
    with (
        tempfile.TemporaryDirectory(prefix="sprat-bench-") as name,
        running(Path(name), processes) as server,
    ):
        with sprat.open_store(f"sqlite:///{name}/fleet.db") as store:
            store.pool("load").push_many(range(CLIENTS * (jobs + 2)))
        seconds, wall, cpu = _drive(server, jobs)
    return [
        processes,
        int(len(seconds) / wall),
        round(cpu / len(seconds) * 1e6),
        round(percentile(seconds, 50) * 1000, 1),
        round(percentile(seconds, 99) * 1000, 1),
    ]


def _drive(server: Running, jobs: int) -> tuple[list[float], float, float]:
    order = json.dumps({"url": server.url, "jobs": jobs})
    given = {**os.environ, "SPRAT_API_KEY": server.key}
    command = [sys.executable, "-m", "bench.http.clients", order]
    cpu, began = server.cpu_seconds(), time.perf_counter()
    clients = [subprocess.Popen(command, stdout=subprocess.PIPE, env=given) for _ in range(CLIENTS)]
    seconds = [one for client in clients for one in json.loads(client.communicate()[0])]
    return seconds, time.perf_counter() - began, server.cpu_seconds() - cpu


# -- waiting ------------------------------------------------------------------------------------


class Waiter:
    """One worker that asks for work again and again, on one connection."""

    def __init__(self, server: Running, number: int) -> None:
        self._server = server
        self._name = f"idle{number}"
        self._secret = ""

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        body = {"worker_id": self._name, "lease_seconds": 3600}
        made = await self._ask("/api/v1/pools/idle/workers", body)
        self._secret = made["secret"]

    async def poll(self, seconds: float) -> list[Any]:
        body = {"worker_id": self._name, "wait_seconds": seconds}
        jobs: list[Any] = (await self._ask("/api/v1/pools/idle/claim", body))["jobs"]
        return jobs

    def close(self) -> None:
        self._writer.close()

    async def _ask(self, path: str, body: object) -> Any:
        text = json.dumps(body).encode()
        lines = [
            f"POST {path} HTTP/1.1",
            "host: localhost",
            f"authorization: Bearer {self._server.key}",
            f"sprat-worker-secret: {self._secret}",
            "content-type: application/json",
            f"content-length: {len(text)}",
        ]
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + text)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].partition("\r")[0])
        return json.loads(await self._reader.readexactly(length))


async def wait(server: Running) -> list[list[Any]]:
    rows = [["nobody waits", server.megabytes(), server.threads(), "-"]]
    waiters = [Waiter(server, number) for number in range(WAITERS)]
    for part in range(0, WAITERS, 50):
        await asyncio.gather(*(one.connect() for one in waiters[part : part + 50]))
    for number in range(ROUNDS):
        cpu = server.cpu_seconds()
        polls = asyncio.gather(*(one.poll(POLL_SECONDS) for one in waiters))
        await asyncio.sleep(POLL_SECONDS / 2)
        seen = server.megabytes(), server.threads()
        await polls
        spent = (server.cpu_seconds() - cpu) / WAITERS * 1e6
        rows.append([f"{WAITERS:,} wait, round {number + 1}", *seen, f"{spent:,.0f}"])
    rows.append(["a job comes: woken after", await _wake(server, waiters), "", ""])
    for one in waiters:
        one.close()
    return rows


async def _wake(server: Running, waiters: list[Waiter]) -> str:
    """How long after a push somebody has the job, and that nobody else has it."""
    polls = [asyncio.create_task(one.poll(POLL_SECONDS)) for one in waiters]
    await asyncio.sleep(POLL_SECONDS / 3)
    pusher = Waiter(server, -1)
    await pusher.connect()
    began = time.perf_counter()
    await pusher._ask("/api/v1/pools/idle/jobs", {"data": 1})
    got = 0.0
    total = 0
    for poll in asyncio.as_completed(polls):
        jobs = await poll
        total += len(jobs)
        got = time.perf_counter() - began if jobs and not got else got
    pusher.close()
    assert total == 1, f"{total} workers got the job"
    return f"{got * 1000:.0f} ms"


def report() -> str:
    jobs = scaled(2000)
    rows = [load(processes, jobs) for processes in (1, 4)]
    with (
        tempfile.TemporaryDirectory(prefix="sprat-bench-") as name,
        running(Path(name), 1) as server,
    ):
        waiting = asyncio.run(wait(server))
    head = ("server processes", "requests/s", "server CPU µs/request", "p50 ms", "p99 ms")
    return f"""# Over HTTP

Written by `make bench-http` (`python -m bench.http`), {datetime.date.today().isoformat()}, sprat
{sprat.__version__}, Python {platform.python_version()}; {environment.machine()}.

## Settle and claim

{CLIENTS} workers in processes of their own, each settling a job and claiming the next in one
request, through `http://127.0.0.1` as the store's URL and with an API key, over one SQLite file.
Clients and servers share the machine's cores, so more server processes than there are cores to
spare only take turns: read the CPU column, which says what a core can answer.

{table(head, rows)}

## Workers that wait

Each holds a long poll of {POLL_SECONDS:g} seconds open on a connection of its own; one server
process. The CPU is what one poll costs from its beginning to its end.

{table(("", "memory MB", "threads", "CPU µs/poll"), waiting)}
"""


if __name__ == "__main__":
    text = report()
    print(text)
    if not QUICK:
        PAGE.write_text(text, encoding="utf-8")
