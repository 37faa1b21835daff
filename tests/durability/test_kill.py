"""kill -9 at random moments: nothing acknowledged is lost, nothing is done twice.

SPRAT_CHAOS_SECONDS makes it a campaign, SPRAT_CHAOS_SEED another one."""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from processes import FORK, PATIENCE
from worlds import World, all_items

from sprat.core.model import WorkerRegistration, WorkItem
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.store import Store

SECONDS = float(os.environ.get("SPRAT_CHAOS_SECONDS", "3"))
SEED = int(os.environ.get("SPRAT_CHAOS_SEED", "20"))
LEASE = 0.3  # short enough that living workers are reaped, too
MAX_RETRIES = 3
ENOUGH = 200  # pending items


class Log:
    """Lines of one process, each in the kernel's hands before the process goes on."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


def push(store: Store, log: Log, chance: random.Random) -> None:
    pool = store.pool("papers")
    while True:
        if pool.size() > ENOUGH:
            time.sleep(0.01)
        elif chance.random() < 0.3:
            ids = pool.push_many(range(chance.randint(2, 20)), max_retries=MAX_RETRIES)
            log("pushed", *ids)
        else:
            key = f"k{os.getpid()}-{chance.random()}"
            log("pushed", pool.push("one", key=key, max_retries=MAX_RETRIES))


def work(store: Store, log: Log, chance: random.Random) -> None:
    pool = store.pool("papers")
    worker_id = f"w{chance.randint(0, 5)}"  # often that of one who was killed, or who lives
    while True:
        worker = store.workers.register(
            WorkerRegistration(worker_id=worker_id, lease_seconds=LEASE)
        )
        while True:
            announced = chance.random() < 0.5
            items = pool.claim_many(worker, chance.choice([1, 1, 5]), announced=announced)
            log("claimed", *(f"{item.id}:{item.epoch}" for item in items))
            while items:
                items = settle(pool, log, chance, items, worker_id)
            if store.workers.heartbeat(worker).status != "active":
                break


def settle(
    pool: WorkPool, log: Log, chance: random.Random, items: list[WorkItem], worker_id: str
) -> list[WorkItem]:
    """End the first claim one way or another; the items still held."""
    item, *rest = items
    dice = chance.random()
    if dice < 0.1:
        pool.fail(item, "it failed")
    elif dice < 0.2:
        pool.fail(item, "it was throttled", transient=True)
    elif dice < 0.25:
        pool.hand_back(item)
    else:
        result = f"{os.getpid()}-{chance.randint(0, 1 << 60)}"
        log("tried", item.id, result)
        if dice < 0.6:
            done, more = pool.complete(item, result), ()
        else:
            start = rest[0] if rest else None
            answer = pool.exchange(
                worker_id,
                settlements=[pool.completion(item, result)],
                start=start,
                claim=0 if rest else 1,
            )
            done, more = answer.settled[0], answer.items
            log("claimed", *(f"{item.id}:{item.epoch}" for item in more))
        if done:
            log("done", item.id, result)
        rest += more
    return rest


def reap(store: Store, log: Log, chance: random.Random) -> None:
    while True:
        store.workers.reap()
        time.sleep(0.02)


ROLES: tuple[Callable[..., None], ...] = (push, push, push, work, work, work, work, reap)


def play(url: str, role: Callable[..., None], log: Path, seed: int) -> None:
    role(open_store(url), Log(log), random.Random(seed))


class Troupe:
    """One process a role; whoever is killed is replaced."""

    def __init__(self, url: str, logs: Path) -> None:
        self._url = url
        self._logs = logs
        self.killed = 0
        self._players: list[BaseProcess] = [self._start(role, n) for n, role in enumerate(ROLES)]

    def _start(self, role: Callable[..., None], number: int) -> BaseProcess:
        log = self._logs / f"{self.killed}-{number}"
        seed = SEED * 1_000_003 + self.killed * 101 + number
        process = FORK.Process(target=play, args=(self._url, role, log, seed), daemon=True)
        process.start()
        return process

    def kill_one(self, number: int) -> None:
        self._kill(number)
        self.killed += 1
        self._players[number] = self._start(ROLES[number], number)

    def kill_all(self) -> None:
        for number in range(len(ROLES)):
            self._kill(number)

    def _kill(self, number: int) -> None:
        player = self._players[number]
        assert player.is_alive(), f"{ROLES[number].__name__} ended with {player.exitcode}"
        player.kill()
        player.join(PATIENCE)
        player.close()


class Story:
    """What the processes wrote down, the killed ones included."""

    def __init__(self, logs: Path) -> None:
        self.pushed: set[str] = set()
        self.claimed: dict[str, list[int]] = defaultdict(list)
        self.tried: dict[str, set[str]] = defaultdict(set)
        self.done: dict[str, list[str]] = defaultdict(list)
        for path in logs.iterdir():
            for line in path.read_text().splitlines():
                self._read(*line.split())

    def _read(self, what: str, *words: str) -> None:
        if what == "pushed":
            self.pushed.update(words)
        elif what == "claimed":
            for word in words:
                item_id, epoch = word.split(":")
                self.claimed[item_id].append(int(epoch))
        elif what == "tried":
            self.tried[words[0]].add(words[1])
        else:
            self.done[words[0]].append(words[1])


class Watch:
    """Looks at some items again and again: an epoch only grows, a finished item stays so."""

    def __init__(self, pool: WorkPool) -> None:
        self._pool = pool
        self._seen: dict[str, WorkItem] = {}

    def look(self) -> None:
        recent = self._pool.items("claimed", limit=10) + self._pool.items("done", limit=5)
        for item_id in {*(item.id for item in recent), *list(self._seen)[-20:]}:
            item = self._pool.get(item_id)
            before = self._seen.get(item_id, item)
            assert item.epoch >= before.epoch
            assert before.status != "done" or item == before
            assert item.attempts <= MAX_RETRIES
            self._seen[item_id] = item


def finish(world: World, store: Store) -> None:
    """After the last death: what is still held is released, and the rest is done in peace."""
    world.advance(60)
    store.workers.reap()
    pool = store.pool("papers")
    assert pool.counts().claimed == 0
    store.workers.register(WorkerRegistration(worker_id="heir", lease_seconds=3600))
    while items := pool.claim_many("heir", 100):
        assert all(pool.settle_many([pool.completion(item, "heir") for item in items]))


@pytest.mark.timeout(SECONDS + 120)
def test_nothing_is_lost_or_doubled_when_processes_are_killed(
    shared: World, shared_url: str, tmp_path: Path
) -> None:
    print(f"seed {SEED}, {SECONDS} s")
    logs = tmp_path / "logs"
    logs.mkdir()
    chance = random.Random(SEED)
    store = shared.open()
    watch = Watch(store.pool("papers"))
    troupe = Troupe(shared_url, logs)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.0, 0.08))
        watch.look()
        troupe.kill_one(chance.randrange(len(ROLES)))
    troupe.kill_all()
    finish(shared, store)
    story = Story(logs)
    print(f"killed {troupe.killed}, pushed {len(story.pushed)}, done {len(story.done)}")
    assert troupe.killed > SECONDS
    assert story.done
    check(all_items(store.pool("papers")), story)


def check(items: list[WorkItem], story: Story) -> None:
    assert story.pushed <= {item.id for item in items}
    for item in items:
        assert item.status in ("done", "poisoned")
        assert item.attempts <= item.max_retries
        epochs = story.claimed[item.id]
        assert len(set(epochs)) == len(epochs), "one epoch was handed out twice"
        assert item.epoch >= max(epochs, default=0)
        acknowledged = story.done[item.id]
        assert len(acknowledged) <= 1
        assert all(item.result == result for result in acknowledged)
        if item.status == "done":
            assert item.result in {"heir", *story.tried[item.id]}
