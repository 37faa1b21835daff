"""Taskiq on Redis: a stream, so that a job is acknowledged when it is done."""

import asyncio

from side import URL, mark
from taskiq_redis import RedisStreamBroker

broker = RedisStreamBroker(URL, queue_name="bench")


@broker.task
async def job(sent: float) -> None:
    mark(sent)


ready: list[bool] = []


async def push(sent: float) -> None:
    if not ready:
        await broker.startup()
        ready.append(True)
    await job.kiq(sent)


async def bulk(n: int) -> None:
    await push(0.0)
    for start in range(1, n, 100):  # it has no bulk push: many at a time
        await asyncio.gather(*(push(0.0) for _ in range(min(100, n - start))))


async def setup() -> None:
    await push(0.0)
