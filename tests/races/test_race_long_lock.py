"""Somebody holds the file for longer than a lease: whoever was only waiting for it is not dead."""

from __future__ import annotations

import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import apsw
import pytest
from patience import eventually
from processes import PATIENCE, beside, hear
from worlds import SqliteWorld

from sprat.core.model import ACTIVE, Reaped, WorkerRegistration
from sprat.store.open_store import open_store

WORKERS = 8
LEASE = 2.0


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SqliteWorld]:
    world = SqliteWorld(tmp_path)
    yield world
    world.close()


def beat(pipe: Connection, url: str, worker_id: str) -> None:
    with open_store(url) as store:
        store.workers.register(WorkerRegistration(worker_id=worker_id, lease_seconds=LEASE))
        pipe.send("registered")
        pipe.recv()
        pipe.send(store.workers.heartbeat(worker_id).status)


def reap(pipe: Connection, url: str, opens: str) -> None:
    if opens == "after":
        pipe.send("ready")
        pipe.recv()
    with open_store(url) as store:
        if opens == "before":
            pipe.send("ready")
            pipe.recv()
        pipe.send(store.workers.reap())


@pytest.mark.parametrize("opens", ["before", "after"])
def test_workers_that_waited_for_the_file_are_not_reaped(opens: str, file: SqliteWorld) -> None:
    file.open().pool("papers").push("work")
    beaters = [beside(beat, file.url, f"w{n}") for n in range(WORKERS)]
    reaper = beside(reap, file.url, opens)
    for _, pipe in [*beaters, reaper]:
        hear(pipe)
    rude = apsw.Connection(str(file.path))
    rude.execute("BEGIN IMMEDIATE")
    for _, pipe in beaters:
        pipe.send("beat")
    if opens == "before":
        reaper[1].send("reap")
    time.sleep(LEASE + 1.0)  # every lease ends
    rude.execute("ROLLBACK")
    if opens == "after":
        reaper[1].send("reap")
    reaped = hear(reaper[1])
    assert [hear(pipe) for _, pipe in beaters] == [ACTIVE] * WORKERS
    assert isinstance(reaped, Reaped)
    assert reaped.workers == ()
    for process, _ in [*beaters, reaper]:
        process.join(PATIENCE)


def test_who_died_meanwhile_is_reaped_one_lease_later(file: SqliteWorld) -> None:
    store = file.open()
    store.workers.register(WorkerRegistration(worker_id="dead", lease_seconds=LEASE))
    reaper = beside(reap, file.url, "before")
    hear(reaper[1])
    rude = apsw.Connection(str(file.path))
    rude.execute("BEGIN IMMEDIATE")
    reaper[1].send("reap")
    time.sleep(LEASE + 1.0)
    rude.execute("ROLLBACK")
    assert hear(reaper[1]).workers == ()
    freed_at = time.monotonic()
    eventually(lambda: store.workers.reap().workers == ("dead",))
    assert time.monotonic() - freed_at > LEASE / 2
    reaper[0].join(PATIENCE)
