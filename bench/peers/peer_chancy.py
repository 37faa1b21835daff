"""Chancy on PostgreSQL: jobs as coroutines, its cheapest executor."""

import asyncio

from chancy import Chancy, Job, Queue, Worker, job
from side import URL, mark


@job(queue="bench")
async def task(*, sent: float) -> None:
    mark(sent)


def app() -> Chancy:
    return Chancy(URL, plugins=[])


held: list[Chancy] = []


async def chancy() -> Chancy:
    if not held:
        held.append(await app().__aenter__())
    return held[0]


async def setup() -> None:
    found = await chancy()
    await found.migrate()
    await found.declare(
        Queue(
            "bench",
            concurrency=100,
            executor="chancy.executors.asyncex.AsyncExecutor",
            polling_interval=1,
            eager_polling=True,
        )
    )


async def push(sent: float) -> None:
    await (await chancy()).push(task.job.with_kwargs(sent=sent))


async def bulk(n: int) -> None:
    one: Job = task.job.with_kwargs(sent=0.0)
    async for _ in (await chancy()).push_many([one] * n, batch_size=1000):
        pass


def work() -> None:
    asyncio.run(serve())


async def serve() -> None:
    async with app() as found, Worker(found) as worker:
        await worker.wait_for_shutdown()
