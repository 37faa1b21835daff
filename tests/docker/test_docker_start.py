"""How long it takes from a push to the job's first line, with nothing running (-s shows it)."""

from __future__ import annotations

import time
from statistics import median

from yards import Yard, eventually

ROUNDS = 5
MANY = 8


def test_a_container_is_at_work_soon(yard: Yard) -> None:
    waits = []
    for n in range(ROUNDS):
        item = yard.push(n)
        yard.check()
        yard.until_said(f"began {n}")
        found = yard.pool.get(item)
        assert found.claimed_at is not None
        waits.append(found.claimed_at - found.created_at)
        eventually(lambda: not yard.workers("active"), what=yard.workers)
    print(f"\none worker: at work after {median(waits):.2f} s (of {ROUNDS}: {max(waits):.2f} s)")
    assert median(waits) < 30


def test_many_containers_are_at_work_soon(yard: Yard) -> None:
    yard.set(max_workers=MANY)
    for n in range(MANY):
        yard.push(n, until="go")
    began = time.monotonic()
    yard.check()
    launched = time.monotonic() - began
    eventually(lambda: yard.pool.counts().claimed == MANY, what=yard.workers)
    took = time.monotonic() - began
    print(f"\n{MANY} workers: launched in {launched:.2f} s, all at work after {took:.2f} s")
    (yard.log / "go").touch()
    yard.until_done(MANY)
    assert took < 60
