"""The store goes away for up to five leases, again and again: no job is charged or run twice, no
worker is lost, although several processes reap the moment that it is back.

`make chaos-outages` makes it a campaign of 50 outages per store and prints what happened."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from campaign import CHUNK, HANDLER, SEED, check_results, chunks, fleet_at, name_of, picture, report
from fleets import POOL, Fleet, eventually, kill
from servers import postgres, redis

OUTAGES = int(os.environ.get("SPRAT_CHAOS_OUTAGES", "2"))
LEASE = float(os.environ.get("SPRAT_CHAOS_LEASE", "1.5"))
WORKERS = 4
REAPERS = 3
# Both isolations, however few outages.
PARTS = list(
    zip(chunks(OUTAGES, min(CHUNK, max(1, OUTAGES // 2))), itertools.cycle(("process", "none")))
)
STAY = {"idle_seconds": 600.0, "min_workers": WORKERS, "max_workers": WORKERS}


class Place:
    """A store that can be taken away, and given back."""

    url: str
    ways: tuple[str, ...] = ("kill", "stop")
    forked = True  # half of the workers are launched by a push, the others run in the foreground

    def __init__(self, place: Path) -> None:
        raise NotImplementedError

    def take(self, way: str) -> None:
        raise NotImplementedError

    def give(self, way: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Redis(Place):
    def __init__(self, place: Path) -> None:
        self._server = redis.RedisServer()
        self.url = self._server.url

    def take(self, way: str) -> None:
        if way == "stop":
            os.kill(self._server.pid, signal.SIGSTOP)
        else:
            self._server.kill()

    def give(self, way: str) -> None:
        if way == "stop":
            os.kill(self._server.pid, signal.SIGCONT)
        else:
            self._server.start()

    def close(self) -> None:
        self._server.stop()


class Postgres(Place):
    def __init__(self, place: Path) -> None:
        postgres.require()
        self._server = postgres.Server(postgres.MEMORY / f"sprat-postgres-{uuid.uuid4().hex}")
        self._stopped: list[int] = []
        self.url = self._server.url()

    def take(self, way: str) -> None:
        if way == "kill":
            return self._server.kill()
        os.kill(self._server.pid, signal.SIGSTOP)  # first: it starts no others from here on
        self._stopped = [self._server.pid, *children_of(self._server.pid)]
        for pid in self._stopped:
            kill(pid, signal.SIGSTOP)
        return None

    def give(self, way: str) -> None:
        if way == "kill":
            return self._server.start()
        for pid in self._stopped:
            kill(pid, signal.SIGCONT)
        self._stopped = []
        return None

    def close(self) -> None:
        for pid in self._stopped:
            kill(pid, signal.SIGCONT)
        self._server.remove()


class Http(Place):
    """`sprat serve` over SQLite. Its workers all run in the foreground."""

    forked = False

    def __init__(self, place: Path) -> None:
        self._store = f"sqlite:///{place}/fleet.db"
        self._port = redis.free_port()
        self._place = place
        self.url = f"http://127.0.0.1:{self._port}"
        self.give("kill")

    def take(self, way: str) -> None:
        if way == "stop":
            self._process.send_signal(signal.SIGSTOP)
        else:
            self._process.kill()
            self._process.wait()

    def give(self, way: str) -> None:
        if way == "stop":
            return self._process.send_signal(signal.SIGCONT)
        words = ("serve", "--no-auth", "--port", str(self._port), "--url", self._store)
        with open(self._place / "serve.log", "ab") as log:
            self._process = subprocess.Popen([sys.executable, "-m", "sprat", *words], stderr=log)
        return None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


HOLD = """
import apsw, sys
db = apsw.Connection(sys.argv[1])
db.set_busy_timeout(60_000)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


class Locked(Place):
    """A file that another process writes to for a long time."""

    ways = ("lock",)

    def __init__(self, place: Path) -> None:
        self._path = place / "fleet.db"
        self.url = f"sqlite:///{self._path}"

    def take(self, way: str) -> None:
        self._holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(self._path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"held\n"

    def give(self, way: str) -> None:
        self._holder.communicate()

    def close(self) -> None:
        pass


class FullDisk(Place):
    """A file on a disk that fills up. Needs the right to mount one."""

    ways = ("full",)

    def __init__(self, place: Path) -> None:
        self._disk = place / "disk"
        self._disk.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=8m", "sprat-test", str(self._disk)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"needs the right to mount a small disk: {error}")
        self.url = f"sqlite:///{self._disk}/fleet.db"

    def take(self, way: str) -> None:
        with open(self._disk / "filler", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def give(self, way: str) -> None:
        (self._disk / "filler").unlink()

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", str(self._disk)], check=True)


PLACES: dict[str, type[Place]] = {
    "redis": Redis,
    "postgres": Postgres,
    "http": Http,
    "sqlite": Locked,
    "full disk": FullDisk,
}


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# -- the fleet ----------------------------------------------------------------------------------


@contextmanager
def foreground(fleet: Fleet, n: int) -> Iterator[None]:
    """Workers that nobody launched, and nobody would replace."""
    command = [sys.executable, "-m", "sprat", "work", POOL, "--url", fleet.url]
    with open(fleet.place / "work.log", "ab") as log:
        running = [subprocess.Popen(command, stderr=log) for _ in range(n)]
    try:
        eventually(lambda: len(fleet.workers("active")) == n, fleet.workers)
        yield
        assert [one.poll() for one in running] == [None] * n, "a foreground worker left"
    finally:
        for one in running:
            one.kill()
            one.wait()


def push(fleet: Fleet, chance: random.Random, n: int) -> set[str]:
    jobs = [fleet.job(seconds=chance.uniform(1, 3) * LEASE) for _ in range(n)]
    return set(fleet.pool.push_many(jobs))


REAP = """
import sys, time
from sprat.fleet import reaper
from sprat.core.errors import StoreUnavailable
from sprat.store.open_store import open_store
while True:
    try:
        with open_store(sys.argv[1]) as store:
            reaper.reap(store, sys.argv[2])
        break
    except StoreUnavailable:
        time.sleep(0.01)
"""


def go_through(place: Place, way: str, seconds: float) -> None:
    """One outage. Those that reap wait for its end in processes of their own."""
    place.take(way)
    command = [sys.executable, "-W", "ignore", "-c", REAP, place.url, POOL]
    reapers = [subprocess.Popen(command) for _ in range(REAPERS)]
    time.sleep(seconds)
    place.give(way)
    assert [one.wait(60) for one in reapers] == [0] * REAPERS


def run(place: Place, fleet: Fleet, kind: str, number: int, pushed: set[str]) -> list[str]:
    """One outage in the middle of work; what it cost."""
    chance = random.Random(f"{SEED} {kind} {number}")
    way, seconds = chance.choice(place.ways), chance.uniform(0.5, 5) * LEASE
    ids = push(fleet, chance, 2 * WORKERS)
    pushed |= ids
    began = len(fleet.happened("start"))
    eventually(lambda: len(fleet.workers("active")) == WORKERS, lambda: picture(fleet))
    fleet.until("start", max(began, len(pushed) - WORKERS))
    before = {worker.worker_id for worker in fleet.workers("active")}
    time.sleep(chance.uniform(0, 0.5) * LEASE)
    go_through(place, way, seconds)
    back_at = time.monotonic()
    until_over(fleet, len(pushed))
    items = [fleet.item(one) for one in ids]
    after = {worker.worker_id for worker in fleet.workers("active")}
    costs = {
        "n_poisoned": sum(item.status == "poisoned" for item in items),
        "n_attempts_charged": sum(item.attempts - 1 for item in items),
        "n_given_back": sum(item.given_back for item in items),
        "n_workers_lost": len(before - after),
        "n_jobs_run_twice": sum(fleet.starts()[one] - 1 for one in ids),
    }
    about: dict[str, Any] = {"kind": f"outages {kind} {way}", "number": number}
    report({**about, **costs, "s_away": seconds, "s_all_done": time.monotonic() - back_at})
    if not any(costs.values()):
        return []
    return [f"{about} {seconds / LEASE:.1f} leases: {costs}\n  {picture(fleet)}"]


def until_over(fleet: Fleet, n: int) -> None:
    def is_over() -> bool:
        counts = fleet.pool.counts()
        return counts.done + counts.poisoned == n

    eventually(is_over, lambda: picture(fleet), 120)


@pytest.mark.timeout(120 + 120 * CHUNK)
@pytest.mark.parametrize(("chunk", "isolation"), PARTS, ids=name_of)
@pytest.mark.parametrize("kind", list(PLACES))
def test_an_outage_costs_no_attempt_and_no_worker(
    kind: str, chunk: range, isolation: str, tmp_path: Path
) -> None:
    place = PLACES[kind](tmp_path)
    try:
        with fleet_at(tmp_path / "fleet", place.url) as fleet:
            settings = {"heartbeat_seconds": LEASE / 2, "isolation": isolation, **STAY}
            fleet.set(handler=HANDLER, start_on_push=place.forked, **settings)
            problems = []
            pushed: set[str] = set()
            with foreground(fleet, WORKERS // 2 if place.forked else WORKERS):
                for number in chunk:
                    problems += run(place, fleet, kind, number, pushed)
            assert not problems, "\n\n".join(problems)
            check_results(fleet, pushed)
    finally:
        place.close()
