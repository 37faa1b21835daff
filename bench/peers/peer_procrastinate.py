"""Procrastinate on PostgreSQL; finished jobs are deleted, its quickest setting."""

from procrastinate import App, PsycopgConnector
from side import URL, mark

app = App(connector=PsycopgConnector(conninfo=URL, min_size=1, max_size=4))


@app.task(name="job", queue="bench")
async def job(sent: float) -> None:
    mark(sent)


opened: list[bool] = []


async def open_once() -> None:
    if not opened:
        await app.open_async()
        opened.append(True)


async def setup() -> None:
    await open_once()
    await app.schema_manager.apply_schema_async()


async def push(sent: float) -> None:
    await open_once()
    await job.defer_async(sent=sent)


async def bulk(n: int) -> None:
    await open_once()
    for start in range(0, n, 1000):
        await job.batch_defer_async(*({"sent": 0.0} for _ in range(min(1000, n - start))))
