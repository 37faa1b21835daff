"""Oban for Python on PostgreSQL, embedded: what its command line starts, without its log of every
job."""

import asyncio

import orjson
import uvloop
from oban import Oban, job
from oban.schema import install
from psycopg.types.json import set_json_dumps, set_json_loads
from side import URL, mark

set_json_dumps(orjson.dumps)
set_json_loads(orjson.loads)


@job(queue="bench")
async def task(sent: float) -> None:
    mark(sent)


held: list[Oban] = []


async def client() -> Oban:
    if not held:
        held.append(Oban(pool=await Oban.create_pool(URL)))
    return held[0]


async def setup() -> None:
    pool = await Oban.create_pool(URL)
    await install(pool)
    await pool.close()


async def push(sent: float) -> None:
    await (await client()).enqueue(task.new(sent))


async def bulk(n: int) -> None:
    found = await client()
    for start in range(0, n, 1000):
        await found.enqueue_many(task.new(0.0) for _ in range(min(1000, n - start)))


def work(*_: str) -> None:
    uvloop.run(serve())


async def serve() -> None:
    pool = await Oban.create_pool(URL)
    async with Oban(pool=pool, queues={"bench": 100}):
        await asyncio.Event().wait()
