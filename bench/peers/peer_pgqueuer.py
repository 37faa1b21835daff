"""PgQueuer on PostgreSQL, with asyncpg."""

import struct

import asyncpg
import uvloop
from pgqueuer import AsyncpgDriver, Job, PgQueuer, Queries
from side import URL, mark

held: list[Queries] = []


async def queries() -> Queries:
    if not held:
        held.append(Queries(AsyncpgDriver(await asyncpg.connect(URL))))
    return held[0]


async def main() -> PgQueuer:
    """What `pgq run` would start; its command line fails with today's typer."""
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(URL)))

    @queue.entrypoint("job")
    async def job(job: Job) -> None:
        mark(struct.unpack("d", job.payload or b"")[0])

    return queue


async def setup() -> None:
    await (await queries()).install()


async def push(sent: float) -> None:
    await (await queries()).enqueue("job", struct.pack("d", sent))


async def bulk(n: int) -> None:
    found = await queries()
    for start in range(0, n, 1000):
        size = min(1000, n - start)
        await found.enqueue(["job"] * size, [struct.pack("d", 0.0)] * size, [0] * size)


async def serve() -> None:
    await (await main()).run(batch_size=100)


def work(*_: str) -> None:
    uvloop.run(serve())
