"""sprat: the loop of a launched worker, jobs in the worker itself, tiny jobs taken ahead."""

import os

from side import URL, mark

import sprat
from sprat.core import model
from sprat.worker.worker import Worker

store = sprat.open_store(URL)
pool = store.pool("bench")


def setup() -> None:
    pool.configure(start_on_push=False, max_workers=100)


def push(sent: float) -> None:
    pool.push({"sent": sent})


def bulk(n: int) -> None:
    for start in range(0, n, 10_000):
        pool.push_many([{"sent": 0.0}] * min(10_000, n - start))


def work(ahead: str) -> None:
    settings = model.PoolSettings(isolation="none", claim_ahead=int(ahead), idle_seconds=3600.0)
    worker = Worker(
        store,
        "bench",
        lambda job: mark(job.item.data["sent"]),
        settings=settings,
        worker_id=f"w-{os.getpid()}",
    )
    worker.run()
