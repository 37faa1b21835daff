"""Huey on SQLite: the verbs its own worker calls, and its own consumer where latency is measured.

It deletes the task when it takes it, so a worker that dies loses it; settling is storing a result,
which a task that returns None does not do.
"""

from __future__ import annotations

import queue

from child import Queue, main, sqlite_settings
from huey import SqliteHuey


class Huey(Queue):
    def __init__(self, place: str, synced: bool | None) -> None:
        self.huey = SqliteHuey(filename=f"{place}/queue.db", fsync=synced)
        self.ran: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.consumer = None

        @self.huey.task()
        def nothing(number: int) -> None:
            """A no-op that stores no result."""

        @self.huey.task()
        def with_result(number: int) -> dict[str, int]:
            return {"n": number}

        @self.huey.task()
        def tell(number: int) -> None:
            self.ran.put(number)

        self.nothing, self.with_result, self.tell = nothing, with_result, tell
        self.ways = {"one": self.run, "one with a result": self.run}

    def settings(self) -> str:
        return sqlite_settings(self.huey.storage.conn.execute)

    def push_bulk(self, n: int, how: str) -> None:
        task = self.with_result if how == "one with a result" else self.nothing
        for number in range(n):
            self.huey.enqueue(task.s(number))

    def push(self, number: int) -> None:
        self.huey.enqueue(self.tell.s(number))

    def run(self, n: int) -> None:
        for _ in range(n):
            self.huey.execute(self.huey.dequeue())

    def take(self, seconds: float) -> int | None:
        if self.consumer is None:
            self.consumer = self.huey.create_consumer()
            self.consumer.start()
        try:
            return self.ran.get(timeout=seconds)
        except queue.Empty:
            return None

    def remaining(self) -> int:
        return self.huey.pending_count()


if __name__ == "__main__":
    main(Huey)
