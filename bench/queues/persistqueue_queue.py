"""persist-queue's SQLiteAckQueue: every call is a commit, synced unless SQLite is told otherwise.

Its blocking get is woken by puts of its own process only, and looks every 10 seconds for those of
others: a consumer in another process has to use a short timeout.
"""

from __future__ import annotations

from child import Queue, main, sqlite_settings
from persistqueue import Empty, SQLiteAckQueue

POLL_SECONDS = 0.05


class Persist(Queue):
    def __init__(self, place: str, synced: bool | None) -> None:
        self.queue = SQLiteAckQueue(place, multithreading=True)
        if synced is False:
            for connection in (self.queue._getter, self.queue._putter):
                connection.execute("PRAGMA synchronous = NORMAL")
        self.ways = {"one": self.run}

    def settings(self) -> str:
        return sqlite_settings(self.queue._putter.execute)

    def push_bulk(self, n: int, how: str) -> None:
        for number in range(n):
            self.push(number)

    def push(self, number: int) -> None:
        self.queue.put({"n": number})

    def run(self, n: int) -> None:
        for _ in range(n):
            self.queue.ack(self.queue.get())

    def take(self, seconds: float) -> int | None:
        try:
            item = self.queue.get(timeout=POLL_SECONDS)
        except Empty:
            return None
        self.queue.ack(item)
        return item["n"]

    def remaining(self) -> int:
        return self.queue.qsize()


if __name__ == "__main__":
    main(Persist)
