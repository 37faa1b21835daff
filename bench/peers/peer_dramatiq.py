"""Dramatiq on Redis."""

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from side import URL, mark

broker = RedisBroker(url=URL)
dramatiq.set_broker(broker)


@dramatiq.actor
def job(sent: float) -> None:
    mark(sent)


def push(sent: float) -> None:
    job.send(sent)


def bulk(n: int) -> None:
    for _ in range(n):  # it has no bulk push
        job.send(0.0)
