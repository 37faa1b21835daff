"""SAQ on Redis."""

from typing import Any

from saq import Queue
from side import URL, mark

queue = Queue.from_url(URL, name="bench")


async def job(context: dict[str, Any], *, sent: float) -> None:
    mark(sent)


settings = {"queue": queue, "functions": [job], "concurrency": 10}
one = {"queue": queue, "functions": [job], "concurrency": 1}


async def push(sent: float) -> None:
    await queue.enqueue("job", sent=sent)


async def bulk(n: int) -> None:
    for _ in range(n):  # it has no bulk push
        await push(0.0)
