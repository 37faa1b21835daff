"""arq on Redis."""

from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from side import URL, mark

SETTINGS = RedisSettings.from_dsn(URL)


async def job(context: dict[str, Any], sent: float) -> None:
    mark(sent)


class Worker:
    functions = [job]
    redis_settings = SETTINGS
    max_jobs = 50
    poll_delay = 0.02
    keep_result = 0


class One(Worker):
    max_jobs = 1


pools: list[Any] = []


async def push(sent: float) -> None:
    if not pools:
        pools.append(await create_pool(SETTINGS))
    await pools[0].enqueue_job("job", sent)


async def bulk(n: int) -> None:
    for _ in range(n):  # it has no bulk push
        await push(0.0)
