"""litequeue: every call is a commit; no blocking get and no bulk put are documented."""

from __future__ import annotations

import json
import time

from child import Queue, main, sqlite_settings
from litequeue import LiteQueue

POLL_SECONDS = 0.05  # its documentation shows no waiting loop: a usual choice


class Lite(Queue):
    def __init__(self, place: str, synced: bool | None) -> None:
        self.queue = LiteQueue(f"{place}/queue.db")
        if synced:
            self.queue.conn.execute("PRAGMA synchronous = FULL")
        self.ways = {"one": self.run}

    def settings(self) -> str:
        return sqlite_settings(self.queue.conn.execute)

    def push_bulk(self, n: int, how: str) -> None:
        if how == "put loop":
            for number in range(n):
                self.push(number)
        else:
            with self.queue.transaction():
                for number in range(n):
                    self.push(number)

    def push(self, number: int) -> None:
        self.queue.put(json.dumps({"n": number}))

    def run(self, n: int) -> None:
        for _ in range(n):
            message = self.queue.pop()
            json.loads(message.data)
            self.queue.done(message.message_id)

    def take(self, seconds: float) -> int | None:
        message = self.queue.pop()
        if message is None:
            time.sleep(POLL_SECONDS)
            return None
        self.queue.done(message.message_id)
        return json.loads(message.data)["n"]

    def remaining(self) -> int:
        return self.queue.qsize()


if __name__ == "__main__":
    main(Lite)
