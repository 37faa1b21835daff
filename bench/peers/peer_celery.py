"""Celery on Redis: acknowledged late, so that a job survives its worker; results not kept."""

from celery import Celery, group
from side import URL, mark

app = Celery("bench", broker=URL)
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=50,
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)


@app.task
def job(sent: float) -> None:
    mark(sent)


def push(sent: float) -> None:
    job.apply_async((sent,))


def bulk(n: int) -> None:
    with app.producer_pool.acquire(block=True) as producer:
        group(job.s(0.0) for _ in range(n)).apply_async(producer=producer)
