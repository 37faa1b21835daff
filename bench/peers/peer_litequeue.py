"""litequeue, which has no worker: a loop over its verbs."""

import time

from litequeue import LiteQueue
from side import IS_WORKER, URL, mark

POLL_SECONDS = 0.05  # its documentation shows no waiting loop: a usual choice

queue = LiteQueue(URL.removeprefix("sqlite:///"))
if not IS_WORKER:
    queue.conn.execute("PRAGMA synchronous = FULL")  # as ours


def push(sent: float) -> None:
    queue.put(str(sent))


def bulk(n: int) -> None:
    for _ in range(n):  # it documents no bulk push
        queue.put("0.0")


def work(*_: str) -> None:
    while True:
        message = queue.pop()
        if message is None:
            time.sleep(POLL_SECONDS)
            continue
        mark(float(message.data))
        queue.done(message.message_id)
