"""The standard library's sqlite3 against apsw, on the statements that a store spends its time in.

`python -m bench.driver`: the same fused settle-and-claim transaction, a batch of a hundred and a
bulk insert through both drivers, CPU per job, import cost, and which SQLite each one brings.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE work_pool (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, pool_name TEXT NOT NULL, data TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending', claimed_by TEXT, claimed_at REAL, token TEXT,
    attempts INTEGER NOT NULL DEFAULT 0, result TEXT, error TEXT, created_at REAL NOT NULL
);
CREATE INDEX work_pool_ready ON work_pool (pool_name, seq) WHERE status = 'pending';
"""
INSERT = "INSERT INTO work_pool (id, pool_name, data, created_at) VALUES (?, 'bench', ?, ?)"
SETTLE = """
UPDATE work_pool SET status = 'done', result = ? WHERE id = ? AND status = 'claimed' AND token = ?
"""
CLAIM = """
UPDATE work_pool SET status = 'claimed', claimed_by = 'worker', claimed_at = ?,
    token = lower(hex(randomblob(8))), attempts = attempts + 1
WHERE seq IN (
    SELECT seq FROM work_pool WHERE pool_name = 'bench' AND status = 'pending'
    ORDER BY seq LIMIT ?
) RETURNING id, data, attempts, token
"""

# SQLite releases whose WAL can be corrupted by a rare race of checkpoints between connections.
FIRST_WITH_WAL_RESET_BUG, LAST_WITH_WAL_RESET_BUG = (3, 7, 0), (3, 51, 2)

ROUNDS = 5
ONE, MANY, BATCH = 2000, 10_000, 100


class Database:
    """The part of both drivers that a store uses, in autocommit mode."""

    def __init__(self, driver: str, path: str) -> None:
        if driver == "apsw":
            import apsw

            self.version = apsw.sqlite_lib_version()
            db: Any = apsw.Connection(path)
            # Else a bound LIMIT, or a bound value beside a partial index, makes this SQLite plan
            # the statement anew at each execution.
            db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            db.execute(SCHEMA)
        else:
            import sqlite3

            self.version = sqlite3.sqlite_version
            db = sqlite3.connect(path, isolation_level=None)
            db.executescript(SCHEMA)
        self.run: Callable[..., Any] = db.execute
        self.run_many: Callable[..., Any] = db.executemany
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):
            self.run(f"PRAGMA {pragma}").fetchall()

    def insert(self, n: int) -> None:
        self.run("BEGIN IMMEDIATE")
        now = time.time()
        self.run_many(INSERT, [(f"{i:032x}", '{"n":1}', now) for i in range(n)])
        self.run("COMMIT")

    def work(self, n: int, batch: int) -> None:
        """Each transaction settles what the one before claimed, and claims the next."""
        claimed: Sequence[tuple[Any, ...]] = ()
        for left in range(n, -1, -batch):
            self.run("BEGIN IMMEDIATE")
            if batch == 1:
                for row in claimed:
                    self.run(SETTLE, ('{"ok":1}', row[0], row[3]))
            else:
                self.run_many(SETTLE, [('{"ok":1}', row[0], row[3]) for row in claimed])
            claimed = self.run(CLAIM, (time.time(), min(batch, left))).fetchall()
            self.run("COMMIT")


def measure(driver: str, place: str, one: int, many: int) -> dict[str, object]:
    """In a process of its own."""
    database = Database(driver, f"{place}/bench.db")
    figures: dict[str, object] = {"sqlite": database.version}
    for name, n, step in (
        ("insert_us", one + many, partial(database.insert, one + many)),
        ("one_us", one, partial(database.work, one, 1)),
        ("many_us", many, partial(database.work, many, BATCH)),
    ):
        began = time.process_time()
        step()
        figures[name] = (time.process_time() - began) / n * 1e6
    done = database.run("SELECT count(*) FROM work_pool WHERE status = 'done'").fetchall()[0][0]
    assert done == one + many, f"{done} of {one + many} items are done"
    return figures


def import_ms(python: str, module: str) -> float:
    code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    return float(subprocess.check_output([python, "-c", code])) * 1e3


def has_wal_reset_bug(version: str) -> bool:
    parts = tuple(int(part) for part in version.split("."))
    return FIRST_WITH_WAL_RESET_BUG <= parts <= LAST_WITH_WAL_RESET_BUG


def section() -> str:
    from bench import environment
    from bench.measure import child, rounds, scaled, table

    python = environment.python()

    def one_round(driver: str) -> dict[str, Any]:
        figures = child(python, Path(__file__), driver=driver, one=scaled(ONE), many=scaled(MANY))
        return figures | {"import_ms": import_ms(python, driver)}

    found = rounds(ROUNDS, {name: partial(one_round, name) for name in ("sqlite3", "apsw")})
    base, other = found["sqlite3"], found["apsw"]
    rows: list[list[object]] = [
        [label, base[name], other[name], other[name] / base[name]]
        for label, name in (
            ("settle and claim in one transaction, CPU us", "one_us"),
            (f"the same, {BATCH} at a time, CPU us a job", "many_us"),
            ("bulk insert, CPU us a row", "insert_us"),
            ("import, CPU ms", "import_ms"),
        )
    ]
    text = table(["", "sqlite3", "apsw", "apsw / sqlite3"], rows)
    for name, figures in found.items():
        state = "has" if has_wal_reset_bug(figures["sqlite"]) else "does not have"
        text += f"\n\n{name} uses SQLite {figures['sqlite']}, which {state} the WAL-reset bug."
    shared = "WAL, synchronous NORMAL, BEGIN IMMEDIATE, a partial index in claim order"
    return f"{text}\n\nBoth: {shared}."


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("{"):
        print(json.dumps(measure(**json.loads(sys.argv[1]))))
    else:
        print(section())
