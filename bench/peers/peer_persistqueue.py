"""persist-queue's SQLiteAckQueue, which has no worker: a loop over its verbs.

Its blocking get is woken by puts of its own process only, and looks every 10 seconds for those of
others: a consumer in another process has to use a short timeout. It reads an item and marks it in
two steps, so that two processes would get the same one: there is one worker only.
"""

from persistqueue import Empty, SQLiteAckQueue
from side import IS_WORKER, URL, mark

POLL_SECONDS = 0.05

place = URL.removeprefix("sqlite:///") + ".d"
queue = SQLiteAckQueue(place, multithreading=True, auto_resume=IS_WORKER)
if IS_WORKER:
    for connection in (queue._getter, queue._putter):
        connection.execute("PRAGMA synchronous = NORMAL")  # as ours


def push(sent: float) -> None:
    queue.put(sent)


def bulk(n: int) -> None:
    for _ in range(n):  # it has no bulk push
        queue.put(0.0)


def work(*_: str) -> None:
    while True:
        try:
            sent = queue.get(timeout=POLL_SECONDS)
        except Empty:
            continue
        mark(sent)
        queue.ack(sent)
