"""The stores under test, each with a clock that a test can move. A new store is one more entry."""

from __future__ import annotations

import math
import time
import uuid
from collections import Counter
from collections.abc import Callable
from multiprocessing import Value
from pathlib import Path

import apsw
from servers import postgres, redis
from servers.orchestrator import Served

from sprat.core import model
from sprat.store.memory.backend import MemoryBackend
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.store import Store


class World:
    """One empty store, ways to reach it again, and its clock."""

    url: str  # of a store that other processes can open

    def __init__(self, place: Path) -> None:
        self.opened: list[Store] = []

    def open(self) -> Store:
        """Another Store on the same data."""
        raise NotImplementedError

    def advance(self, seconds: float) -> None:
        """Move the store's clock forward, as time passes while the store is in use."""
        raise NotImplementedError

    def outage(self, seconds: float) -> None:
        """Move the store's clock forward, as time passes while nothing reaches the store."""
        raise NotImplementedError

    def check(self) -> None:
        """What the store itself can say about its files."""

    def close(self) -> None:
        for store in self.opened:
            store.close()


class MemoryWorld(World):
    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.now = 1_700_000_000.0
        self.backend = MemoryBackend(clock=lambda: self.now)

    def open(self) -> Store:
        return Store(self.backend)

    def advance(self, seconds: float) -> None:
        self.outage(seconds)
        move_mark(self.backend, seconds)

    def outage(self, seconds: float) -> None:
        self.now += seconds


class SqliteWorld(World):
    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.path = place / "fleet.db"
        self.url = f"sqlite:///{self.path}"

    def open(self) -> Store:
        store = open_store(self.url)
        self.opened.append(store)
        return store

    def advance(self, seconds: float) -> None:
        self._move(seconds, "clock_base", "mark")

    def outage(self, seconds: float) -> None:
        self._move(seconds, "clock_base")

    def _move(self, seconds: float, *names: str) -> None:
        db = apsw.Connection(str(self.path))
        db.set_busy_timeout(10_000)
        with db:
            for name in names:
                db.execute("UPDATE meta SET value = value + ? WHERE name = ?", (seconds, name))
        db.close()

    def check(self) -> None:
        db = apsw.Connection(str(self.path))
        db.set_busy_timeout(10_000)
        assert db.pragma("integrity_check") == "ok"
        db.close()


class PostgresWorld(World):
    """The tables are made once a test process, and emptied for each test."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.url = postgres.shared_url()
        postgres.empty(self.url)

    def open(self) -> Store:
        store = open_store(self.url)
        self.opened.append(store)
        return store

    def advance(self, seconds: float) -> None:
        postgres.advance(self.url, seconds)

    def outage(self, seconds: float) -> None:
        postgres.outage(self.url, seconds)


MOVE_CLOCK = """
redis.call('HINCRBY', KEYS[1], 'ahead', ARGV[1])
if ARGV[2] == '1' and redis.call('HEXISTS', KEYS[1], 'mark') == 1 then
  redis.call('HINCRBY', KEYS[1], 'mark', ARGV[1])
end
"""


class RedisWorld(World):
    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.server = redis.shared_server()
        self.tag = f"test-{uuid.uuid4().hex}"
        self.url = f"{self.server.url}?store={self.tag}"

    def open(self) -> Store:
        store = open_store(self.url)
        self.opened.append(store)
        return store

    def advance(self, seconds: float) -> None:
        self._pass(seconds, "1")

    def outage(self, seconds: float) -> None:
        self._pass(seconds, "0")
        for store in self.opened:
            store.backend._client._marked_at = -math.inf  # type: ignore[attr-defined]

    def _pass(self, seconds: float, is_in_use: str) -> None:
        key = f"{{{self.tag}}}:clock"
        self.server.ask("EVAL", MOVE_CLOCK, 1, key, round(seconds * 1e6), is_in_use)

    def close(self) -> None:
        super().close()
        self.server.forget(f"{{{self.tag}}}:*")


class HttpWorld(World):
    """A memory store behind a real server in a thread of this process."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        # By how much a test, perhaps from another process, moved the clock and the mark.
        self._ahead, self._marked_ahead = Value("d", 0.0), Value("d", 0.0)
        self._mark_moved = 0.0
        self._time = time.time  # runs as it does elsewhere, unless a test moves it
        self._backend = MemoryBackend(clock=self._clock)
        self._served = Served(Store(self._backend))
        self.url = self._served.url
        with open_store(self.url) as first:
            first.pools()  # the server's start is nobody's waiting time

    def open(self) -> Store:
        store = open_store(self.url)
        self.opened.append(store)
        return store

    def advance(self, seconds: float) -> None:
        self._marked_ahead.value += seconds
        self.outage(seconds)

    def outage(self, seconds: float) -> None:
        self._ahead.value += seconds

    def _clock(self) -> float:
        moved = self._marked_ahead.value - self._mark_moved
        if moved:
            self._mark_moved += moved
            move_mark(self._backend, moved)
        return self._time() + self._ahead.value

    def close(self) -> None:
        super().close()
        self._served.stop()


class HttpPostgresWorld(PostgresWorld):
    """A PostgreSQL store behind a real server, as a fleet on many machines has it. The server is
    started once a test process; its connections outlast the emptying."""

    _served: list[Served] = []

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self._database = self.url
        if not self._served:
            behind = open_store(f"{self.url}?application_name={postgres.SERVER}")
            self._served.append(Served(behind))
        self.url = self._served[0].url

    def advance(self, seconds: float) -> None:
        postgres.advance(self._database, seconds)

    def outage(self, seconds: float) -> None:
        postgres.outage(self._database, seconds)


def move_mark(backend: MemoryBackend, seconds: float) -> None:
    """Let the store have been in use until these seconds later."""
    state = backend._state
    if state.marked_at is not None:
        state.marked_at += seconds


WORLDS: dict[str, Callable[[Path], World]] = {
    "memory": MemoryWorld,
    "sqlite": SqliteWorld,
    "postgres": PostgresWorld,
    "redis": RedisWorld,
    "http": HttpWorld,
}
# Those of the conformance suite: also a server whose store is a real database.
CONFORMING = {**WORLDS, "http-postgres": HttpPostgresWorld}
# Those that other processes can open by `world.url`.
SHARED = ("sqlite", "postgres", "redis", "http")


def all_items(pool: WorkPool) -> list[model.WorkItem]:
    """Every item of a pool, page by page."""
    found = page = pool.items(limit=500)
    while page:
        page = pool.items(limit=500, after=page[-1].id)
        found = found + page
    return found


def check_counts(pool: WorkPool) -> None:
    """What is counted without visiting the items equals what a visit finds."""
    items = all_items(pool)
    groups = {None, *(item.group for item in items)}
    for group in groups:
        seen = pool.observe(group)
        chosen = [item for item in items if group is None or item.group == group]
        tally = Counter(item.status for item in chosen)
        delayed = sum(
            item.status == model.PENDING and item.run_at is not None and item.run_at > seen.now
            for item in chosen
        )
        counted = model.Counts(**tally, delayed=delayed)
        assert seen.counts == counted, f"{seen.counts} but {counted}"
    assert pool.counts() == pool.observe().counts
