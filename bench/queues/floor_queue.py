"""The floor: the statements of our commonest exchange, run bare; and the least that SQLite can do.

The same file, tables, locks, fence and durability, but no checks of input, no records, no JSON and
no statistics: what is left is what SQLite and its driver cost for such a job. The least is one row
changed and one commit: nobody who commits once a job can cost less.
"""

from __future__ import annotations

import os
import time

import apsw
from child import main
from sprat_queue import Sprat

from sprat.core import model
from sprat.store.sqlite import claims, connection, exchange_fast_path


class Floor(Sprat):
    def __init__(self, place: str, synced: bool | None) -> None:
        super().__init__(place, synced)
        self.ways = {"one": self.bare, "row": self.row}

    def push_bulk(self, n: int, how: str) -> None:
        if how != "row":
            super().push_bulk(n, how)

    def row(self, n: int) -> None:
        db = self._open()
        db.execute("CREATE TABLE IF NOT EXISTS least (n)")
        db.execute("INSERT INTO least SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM least)")
        run = db.cursor().execute
        for _ in range(n):
            run("UPDATE least SET n = n + 1")
        db.close()

    def bare(self, n: int) -> None:
        db = self._open()
        run, worker_id = db.cursor().execute, self.worker.worker_id
        incarnation = self.worker.incarnation
        item_id = token = ""
        for number in range(n):
            run("BEGIN IMMEDIATE")
            about = (worker_id, "bench", time.monotonic(), incarnation)
            if number == 0:
                seen = run(exchange_fast_path.LOOK_FIRST, about).fetchone()
            else:
                seen = run(exchange_fast_path.LOOK_NEXT, (*about, item_id, token)).fetchone()
                run(claims.COMPLETE, (seen[1], None, seen[0]))
            token = os.urandom(8).hex()
            run(exchange_fast_path.CLAIM, (seen[3], worker_id, seen[0], token))
            run(
                exchange_fast_path.COUNT_NEXT if number else exchange_fast_path.COUNT_FIRST,
                ("bench",),
            )
            run("COMMIT")
            item_id = seen[5]
        done = model.Settlement(item_id=item_id, token=token, outcome=model.COMPLETE)
        self.pool.settle_many([done])
        db.close()

    def _open(self) -> apsw.Connection:
        """As the store opens it."""
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX
        db = apsw.Connection(self.path, flags=flags)
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        pages = connection.CHECKPOINT_BYTES // int(db.pragma("page_size"))
        db.pragma("wal_autocheckpoint", pages)
        db.pragma("synchronous", "FULL" if "sync=all" in self.url else "NORMAL")
        return db


if __name__ == "__main__":
    main(Floor)
