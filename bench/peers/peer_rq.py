"""RQ: `rq worker`, without a fork for each job."""

import redis
from rq import Queue
from side import URL

connection = redis.Redis.from_url(URL)
queue = Queue("bench", connection=connection)


def push(sent: float) -> None:
    queue.enqueue("side.mark", sent)


def bulk(n: int) -> None:
    for start in range(0, n, 1000):
        batch = [Queue.prepare_data("side.mark", (0.0,)) for _ in range(min(1000, n - start))]
        queue.enqueue_many(batch)
