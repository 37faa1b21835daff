"""kill -9 of the server in the middle of load: nothing acknowledged is lost, nothing is committed
twice, and workers come back by themselves.

`make chaos-postgres` makes it a campaign of ten rounds and prints what happened."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from processes import FORK
from servers import postgres
from worlds import all_items, check_counts

from sprat.core.errors import StoreUnavailable
from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.store import Store

ROUNDS = int(os.environ.get("SPRAT_CHAOS_ROUNDS", "2"))
SEED = int(os.environ.get("SPRAT_CHAOS_SEED", "5"))
PUSHERS, WORKERS = 2, 3
ENOUGH = 500  # pending items
PATIENCE = 90.0


class Log:
    """Lines of one process, each in the kernel's hands before the process goes on."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


def push(store: Store, log: Log, name: str) -> None:
    pool = store.pool("papers")
    number = 0
    while True:
        try:
            if pool.size() > ENOUGH:
                time.sleep(0.01)
                continue
            number += 1
            log("pushed", pool.push(number, key=f"{name}-{number}", max_retries=1000))
            log("pushed", *pool.push_many(range(5), max_retries=1000))
        except StoreUnavailable:
            log("unavailable")


def work(store: Store, log: Log, name: str) -> None:
    pool = store.pool("papers")
    while True:
        try:
            worker = store.workers.register(WorkerRegistration(worker_id=name, lease_seconds=60))
            items = pool.claim_many(worker, 8)
            while items:
                settled = [pool.completion(item, f"{name} {item.epoch}") for item in items]
                answer = pool.exchange(worker, settlements=settled, claim=8)
                for item, is_ours in zip(items, answer.settled, strict=True):
                    log("done" if is_ours else "lost", item.id, f"{name} {item.epoch}")
                items = list(answer.items)
            pool.wait(worker, seconds=1)
        except StoreUnavailable:
            log("unavailable")


def run(job: Callable[[Store, Log, str], None], url: str, path: Path, name: str) -> None:
    with open_store(url) as store:
        job(store, Log(path), name)


class Load:
    """Processes that push and work until they are stopped, and what they logged."""

    def __init__(self, url: str, place: Path) -> None:
        self.place = place
        jobs = [(push, f"p{n}") for n in range(PUSHERS)] + [(work, f"w{n}") for n in range(WORKERS)]
        self.processes: list[BaseProcess] = []
        for job, name in jobs:
            process = FORK.Process(target=run, args=(job, url, place / f"{name}.log", name))
            process.start()
            self.processes.append(process)

    def lines(self) -> Iterator[list[str]]:
        for path in sorted(self.place.glob("*.log")):
            for line in path.read_text().splitlines():
                yield line.split(maxsplit=2) if line.startswith(("done", "lost")) else line.split()

    def count(self, word: str) -> int:
        return sum(line[0] == word for line in self.lines())

    def until_done(self, n: int) -> None:
        end = time.monotonic() + PATIENCE
        while self.count("done") < n:
            assert time.monotonic() < end, f"only {self.count('done')} of {n} are done"
            assert all(process.is_alive() for process in self.processes)
            time.sleep(0.02)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()


@pytest.mark.timeout(120 + 60 * ROUNDS)
def test_a_killed_server_loses_nothing_and_repeats_nothing(
    server: postgres.Server, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    open_store(server.url()).close()
    load = Load(server.url(), tmp_path)
    away: list[float] = []
    try:
        for place in range(ROUNDS):
            load.until_done(load.count("done") + 100)
            time.sleep(chance.random() * 0.2)  # a moment that nobody chose
            stopped = time.monotonic()
            if place % 2:
                server.stop("immediate")
            else:
                server.kill()
            server.start()
            load.until_done(load.count("done") + 20)  # who worked goes on, by itself
            away.append(time.monotonic() - stopped)
    finally:
        load.stop()
    judge(server.url(), load, away)


def judge(url: str, load: Load, away: list[float]) -> None:
    with open_store(url) as store:
        pool = store.pool("papers")
        stored = {item.id: item for item in all_items(pool)}
        pushed = [item_id for line in load.lines() if line[0] == "pushed" for item_id in line[1:]]
        assert set(pushed) <= set(stored), "a push that was acknowledged is lost"
        assert len(set(pushed)) == len(pushed)
        keys = Counter(item.key for item in stored.values() if item.key)
        assert set(keys.values()) == {1}, "one key, two items"
        done = [(line[1], line[2]) for line in load.lines() if line[0] == "done"]
        assert max(Counter(item_id for item_id, _ in done).values()) == 1, "committed twice"
        for item_id, result in done:
            assert (stored[item_id].status, stored[item_id].result) == ("done", result)
        check_counts(pool)
        print(
            f"{len(away)} kills: {len(pushed)} pushed, {len(done)} done, none lost or twice;"
            f" away {', '.join(f'{s:.1f}' for s in away)} s"
        )
