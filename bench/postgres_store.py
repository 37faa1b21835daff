"""Our side on PostgreSQL: CPU a job of a drain (worker and server), bulk push, idle latency.

    python -m bench.postgres_store [URL]

Without a URL it starts a private server (from the system's package, fsync on). Beside it runs the
floor: the bare statements that any queue with one row a job needs, a hundred at a time, without a
library. CPU is what counts here: wall time depends on who else uses the machine.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import psycopg

from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store

ITEMS = 20_000
BATCH = 100
LATENCIES = 200
TICK = os.sysconf("SC_CLK_TCK")


class Server:
    """What the server's processes used of the CPU, those that ended included."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as db:
            row = db.execute("SELECT pg_backend_pid()").fetchone()
            assert row
            self.postmaster = int(_stat(row[0])[1])

    def cpu_seconds(self) -> float:
        pids = Path(f"/proc/{self.postmaster}/task/{self.postmaster}/children").read_text().split()
        living = sum(_ticks(_stat(int(pid))[11:13]) for pid in pids)
        return (living + _ticks(_stat(self.postmaster)[11:15])) / TICK


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["0"] * 15


def _ticks(values: list[str]) -> int:
    return sum(map(int, values))


def push_bulk(url: str, n: int = ITEMS, at_once: int = 1000) -> dict[str, float]:
    """Items a second, pushed a thousand at a time."""
    with open_store(url) as store:
        pool = store.pool("bench")
        begin = time.monotonic()
        for _ in range(n // at_once):
            pool.push_many([{"n": place} for place in range(at_once)])
        return {"pushed a second": n / (time.monotonic() - begin)}


def drain(url: str, n: int = ITEMS, batch: int = BATCH) -> dict[str, float]:
    """Microseconds of CPU a job, with one worker that exchanges `batch` jobs for the next."""
    server = Server(url)
    with open_store(url) as store:
        pool = store.pool("bench")
        pool.push_many([{"n": place} for place in range(n - pool.size())])
        worker = store.workers.register(WorkerRegistration(worker_id="bench", lease_seconds=600))
        before, theirs, wall = time.process_time(), server.cpu_seconds(), time.monotonic()
        items = pool.claim_many(worker, batch)
        done = 0
        while items:
            done += len(items)
            settlements = [pool.completion(item, seconds=0.0) for item in items]
            items = list(pool.exchange(worker, settlements=settlements, claim=batch).items)
        wall = time.monotonic() - wall
        ours = time.process_time() - before
        theirs = server.cpu_seconds() - theirs
    return {
        "jobs a second": done / wall,
        "worker us a job": ours / done * 1e6,
        "server us a job": theirs / done * 1e6,
    }


def latency(url: str, n: int = LATENCIES) -> dict[str, float]:
    """Milliseconds from before the push until an idle worker has the item."""
    taken = threading.Event()
    seen: list[float] = []

    def work() -> None:
        with open_store(url) as store:
            pool = store.pool("idle")
            worker = store.workers.register(WorkerRegistration(worker_id="idle"))
            while len(seen) < n:
                if pool.wait(worker, seconds=10):
                    item = pool.claim(worker)
                    if item:
                        seen.append(time.monotonic() - item.data)
                        pool.complete(item)
                        taken.set()

    with open_store(url) as store:
        pool = store.pool("idle")
        pool.pause(0.0)
        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(1.0)  # it waits
        for _ in range(n):
            taken.clear()
            pool.push(time.monotonic())
            taken.wait(20)
            time.sleep(0.02)  # it waits again
        thread.join()
    cuts = statistics.quantiles(seen, n=100)
    return {"p50 ms": cuts[49] * 1e3, "p95 ms": cuts[94] * 1e3, "p99 ms": cuts[98] * 1e3}


FLOOR = """
DROP SCHEMA IF EXISTS floor CASCADE; CREATE SCHEMA floor;
CREATE TABLE floor.job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data text NOT NULL,
    status text NOT NULL DEFAULT 'pending', worker text, result text);
CREATE INDEX ready ON floor.job (id) WHERE status = 'pending';
"""
TAKE = """
UPDATE floor.job SET status = 'claimed', worker = 'w' WHERE id = ANY (ARRAY(
    SELECT id FROM floor.job WHERE status = 'pending' ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED))
RETURNING id, data
"""
SETTLE = "UPDATE floor.job SET status = 'done' WHERE id = ANY (%s)"


def floor(url: str, n: int = ITEMS, batch: int = BATCH) -> dict[str, float]:
    """The same drain by two bare statements."""
    server = Server(url)
    with psycopg.connect(url.partition("?")[0], autocommit=True) as db:
        db.execute(FLOOR)
        with db.cursor().copy("COPY floor.job (data) FROM STDIN") as copy:
            for place in range(n):
                copy.write_row((f'{{"n":{place}}}',))
        before, theirs, wall = time.process_time(), server.cpu_seconds(), time.monotonic()
        while rows := db.execute(TAKE, (batch,)).fetchall():
            db.execute(SETTLE, ([row[0] for row in rows],))
        wall = time.monotonic() - wall
        ours = time.process_time() - before
        theirs = server.cpu_seconds() - theirs
    return {
        "jobs a second": n / wall,
        "worker us a job": ours / n * 1e6,
        "server us a job": theirs / n * 1e6,
    }


def main() -> None:
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from servers.postgres import Server as Private

    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o711)  # the server runs as another user
        private = Private(Path(place) / "postgres")
        try:
            measure(private.url())
        finally:
            private.stop()


def measure(url: str) -> None:
    for name, figures in (
        ("bulk push", push_bulk(url)),
        ("drain", drain(url)),
        ("drain one at a time", drain(url, 2000, 1)),
        ("floor", floor(url)),
        ("idle latency", latency(url)),
    ):
        print(f"{name:22}", ", ".join(f"{k}: {v:,.1f}" for k, v in figures.items()))


if __name__ == "__main__":
    main()
