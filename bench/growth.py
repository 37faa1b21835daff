"""Does a claim get dearer as the store fills?

`python -m bench.growth`: claim() and complete() with a thousand and with a million stored items,
nearly all of them done, and nearly all of them pending.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time

import sprat
from bench.measure import QUICK, Target, table, targets
from sprat.core.model import Settlement, WorkerRegistration

SMALL, LARGE = 1_000, 50_000 if QUICK else 1_000_000
PUSH_CHUNK, DONE_CHUNK = 20_000, 1_000
ROUNDS, JOBS = 7, 300
LIMIT = 1.5


class Filled:
    """A store with n items that are all done, or all pending."""

    def __init__(self, path: str, n: int, done: bool) -> None:
        self.n, self.done = n, done
        self.store = sprat.open_store(f"sqlite:///{path}")
        self.pool = self.store.pool("bench")
        self.worker = self.store.workers.register(
            WorkerRegistration(worker_id="bench", lease_seconds=36000.0)
        )
        for start in range(0, n, PUSH_CHUNK):
            self.pool.push_many({"n": i} for i in range(start, min(n, start + PUSH_CHUNK)))
        if done:
            self._finish()

    def _finish(self) -> None:
        pool = self.pool
        settlements: list[Settlement] = []
        while True:
            answer = pool.exchange(self.worker, settlements=settlements, claim=DONE_CHUNK)
            settlements = [pool.completion(item) for item in answer.items]
            if not settlements:
                return

    def measure(self) -> float:
        """CPU microseconds for one claim and complete; as many items are pushed first."""
        self.pool.push_many({"n": i} for i in range(JOBS))
        self._run(20)
        began = time.process_time()
        self._run(JOBS - 20)
        return (time.process_time() - began) / (JOBS - 20) * 1e6

    def _run(self, n: int) -> None:
        for _ in range(n):
            item = self.pool.claim(self.worker)
            assert item is not None
            self.pool.complete(item)


def compare(done: bool) -> tuple[list[object], Target]:
    what = "done" if done else "pending"
    with tempfile.TemporaryDirectory(prefix="sprat-bench-") as place:
        stores: list[Filled] = []
        for n in (SMALL, LARGE):
            print(f"  filling a store with {n:,} items, {what}", file=sys.stderr, flush=True)
            stores.append(Filled(f"{place}/{n}.db", n, done))
        for store in stores:
            store.measure()
        figures: dict[int, list[float]] = {SMALL: [], LARGE: []}
        for number in range(ROUNDS):
            for store in stores if number % 2 else reversed(stores):
                figures[store.n].append(store.measure())
        for store in stores:
            store.store.close()
    small, large = (statistics.median(figures[n]) for n in (SMALL, LARGE))
    target = Target(f"claim + complete, {LARGE:,} {what} to {SMALL:,}", large / small, LIMIT)
    return [f"nearly all {what}", small, large, large / small], target


def section() -> tuple[str, list[Target]]:
    found = [compare(done) for done in (True, False)]
    head = ["claim() and complete(), CPU us", f"{SMALL:,} items", f"{LARGE:,} items", "ratio"]
    kept = [target for _, target in found]
    verdict = targets("full against nearly empty", kept)
    return f"{table(head, [row for row, _ in found])}\n\n{verdict}", kept


if __name__ == "__main__":
    print(section()[0])
