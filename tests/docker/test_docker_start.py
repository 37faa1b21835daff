"""How long it takes from a push to the job's first line, with nothing running (-s shows it)."""

from __future__ import annotations

import time
from statistics import median

from docker_fleet import DockerFleet, eventually

ROUNDS = 5
MANY = 8


def test_a_container_is_at_work_soon(fleet: DockerFleet) -> None:
    waits = []
    for n in range(ROUNDS):
        item = fleet.push(n)
        fleet.check()
        fleet.until_said(f"began {n}")
        found = fleet.pool.get(item)
        assert found.claimed_at is not None
        waits.append(found.claimed_at - found.created_at)
        eventually(lambda: not fleet.workers("active"), what=fleet.workers)
    print(f"\none worker: at work after {median(waits):.2f} s (of {ROUNDS}: {max(waits):.2f} s)")
    assert median(waits) < 30


def test_many_containers_are_at_work_soon(fleet: DockerFleet) -> None:
    fleet.set(max_workers=MANY)
    for n in range(MANY):
        fleet.push(n, until="go")
    began = time.monotonic()
    fleet.check()
    launched = time.monotonic() - began
    eventually(lambda: fleet.pool.counts().claimed == MANY, what=fleet.workers)
    took = time.monotonic() - began
    print(f"\n{MANY} workers: launched in {launched:.2f} s, all at work after {took:.2f} s")
    (fleet.log / "go").touch()
    fleet.until_done(MANY)
    assert took < 60
