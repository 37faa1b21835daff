"""The Redis store beside the bare floor, on one private server with an append-only file.

`python -m bench.redis_store`: CPU microseconds a job of a batched drain (worker + server), one job
at a time, bulk push, and latency on an idle worker. The floor is the least that a safe queue can do
in Lua with nothing around it: take n ids, note them as held with a token, read their payloads; then
check the token and delete. `sprat_on` measures our side on any server; others may call it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sprat
from bench.measure import Figures, percentile, rounds, scaled
from sprat.core.model import Settlement, WorkerRecord, WorkerRegistration
from sprat.store.pool import WorkPool
from sprat.store.redis.address import parse
from sprat.store.redis.resp import RespConnection, pack

JOBS = scaled(20_000)
SINGLES = scaled(5_000)
PINGS = scaled(300)
BATCH = 50
ROUNDS = 3

FLOOR_CLAIM = """
local ids = redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1)
if #ids == 0 then return {} end
redis.call('ZREM', KEYS[1], unpack(ids))
local held, now = {}, redis.call('TIME')[1]
for i, id in ipairs(ids) do
  held[2 * i - 1], held[2 * i] = id, ARGV[2] .. ':' .. now
end
redis.call('HSET', KEYS[3], unpack(held))
return {ids, redis.call('HMGET', KEYS[2], unpack(ids))}
"""
FLOOR_SETTLE = """
local n = 0
for i = 2, #ARGV do
  local held = redis.call('HGET', KEYS[3], ARGV[i])
  if held and string.sub(held, 1, #ARGV[1]) == ARGV[1] then
    redis.call('HDEL', KEYS[3], ARGV[i])
    redis.call('HDEL', KEYS[2], ARGV[i])
    n = n + 1
  end
end
return n
"""


@contextmanager
def private_server() -> Iterator[str]:
    """The URL of a redis-server of our own."""
    place = Path(tempfile.mkdtemp(prefix="sprat-bench-redis-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            *("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(place)),
            *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
        ],
        stdout=subprocess.DEVNULL,
    )
    url = f"redis://127.0.0.1:{port}/0"
    try:
        await_answer(url)
        yield url
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
        shutil.rmtree(place, ignore_errors=True)


def await_answer(url: str) -> None:
    for _ in range(500):
        try:
            connect(url).ask("PING")
        except OSError:
            time.sleep(0.01)
        else:
            return
    raise SystemExit("redis-server does not answer")


def connect(url: str) -> RespConnection:
    address = parse(url)
    return RespConnection(address, address.hosts[0])


def server_cpu(url: str) -> float:
    text = connect(url).ask("INFO", "cpu")
    known = dict(line.split(":") for line in text.splitlines() if ":" in line)
    return float(known["used_cpu_user"]) + float(known["used_cpu_sys"])


def cost(url: str, n: int, work: Callable[[], None]) -> Figures:
    """CPU microseconds a job of this process and of the server, and jobs a second."""
    served, began, clock = server_cpu(url), time.process_time(), time.monotonic()
    work()
    worker, wall = time.process_time() - began, time.monotonic() - clock
    server = server_cpu(url) - served
    return {"worker": worker / n * 1e6, "server": server / n * 1e6, "rate": n / wall}


class Ours:
    """A pool and a worker of a fresh store."""

    def __init__(self, url: str) -> None:
        self.url = url
        name = os.urandom(4).hex()
        self.store = sprat.open_store(f"{url}?store=bench-{name}")
        self.pool: WorkPool = self.store.pool("bench")
        self.worker: WorkerRecord = self.store.workers.register(
            WorkerRegistration(worker_id="bench", lease_seconds=3600.0)
        )

    def push(self, n: int) -> Figures:
        return cost(self.url, n, lambda: self._push(n))

    def _push(self, n: int) -> None:
        for begin in range(0, n, 1000):
            self.pool.push_many({"n": i} for i in range(begin, min(begin + 1000, n)))

    def drain(self, n: int, batch: int) -> Figures:
        return cost(self.url, n, lambda: self._drain(n, batch))

    def _drain(self, n: int, batch: int) -> None:
        settlements: list[Settlement] = []
        for _ in range(n // batch):
            answer = self.pool.exchange(self.worker, settlements=settlements, claim=batch)
            assert len(answer.items) == batch
            settlements = [self.pool.completion(item) for item in answer.items]
        self.pool.settle_many(settlements)

    def latency(self, n: int) -> Figures:
        """Milliseconds from a push to its claim by a worker that waits."""
        took: list[float] = []
        idle = threading.Event()

        def work() -> None:
            for _ in range(n):
                idle.set()
                while not self.pool.wait(self.worker, seconds=10.0):
                    pass
                item = self.pool.claim(self.worker)
                took.append(time.monotonic() - item.data["at"])
                self.pool.complete(item)

        worker = threading.Thread(target=work)
        pusher = sprat.open_store(self.store.url).pool("bench")
        worker.start()
        for _ in range(n):
            idle.wait()
            idle.clear()
            time.sleep(0.005)
            pusher.push({"at": time.monotonic()})
        worker.join()
        return {f"p{p}": percentile(took, p) * 1000 for p in (50, 95, 99)}


def sprat_on(url: str) -> dict[str, Figures]:
    """All our figures on this server."""
    pushed = Ours(url)
    figures = {"push": pushed.push(JOBS), "drain": pushed.drain(JOBS, BATCH)}
    single = Ours(url)
    single.push(SINGLES)
    figures["one by one"] = single.drain(SINGLES, 1)
    figures["latency"] = Ours(url).latency(PINGS)
    return figures


def floor_on(url: str) -> dict[str, Figures]:
    wire = connect(url)
    wire.ask("DEL", "floor:ready", "floor:data", "floor:held")
    keys = (3, "floor:ready", "floor:data", "floor:held")
    claim, settle = (wire.ask("SCRIPT", "LOAD", text) for text in (FLOOR_CLAIM, FLOOR_SETTLE))

    def push() -> None:
        for begin in range(0, JOBS, 1000):
            ids = range(begin, min(begin + 1000, JOBS))
            commands: list[Any] = [("HSET", "floor:data", i, f'{{"n":{i}}}') for i in ids]
            commands += [("ZADD", "floor:ready", i, i) for i in ids]
            wire.send(b"".join(pack(command) for command in commands))
            for _ in commands:
                wire.read()

    def drain() -> None:
        for number in range(JOBS // BATCH):
            ids, _ = wire.ask("EVALSHA", claim, *keys, BATCH, f"token{number}")
            wire.ask("EVALSHA", settle, *keys, f"token{number}", *ids)

    return {"push": cost(url, JOBS, push), "drain": cost(url, JOBS, drain)}


def flat(figures: dict[str, Figures]) -> Figures:
    return {f"{what} {name}": n for what, some in figures.items() for name, n in some.items()}


def main() -> None:
    with private_server() as url:
        found = rounds(
            ROUNDS,
            {"sprat": lambda: flat(sprat_on(url)), "floor": lambda: flat(floor_on(url))},
        )
    for name, figures in found.items():
        for what, n in figures.items():
            print(f"{name:6} {what:20} {n:12,.1f}")
    ours, floor = (
        found[name]["drain worker"] + found[name]["drain server"] for name in ("sprat", "floor")
    )
    print(f"CPU a job of a drain: {ours:.0f} us, {ours / floor:.2f} times the floor's {floor:.0f}")


if __name__ == "__main__":
    main()
