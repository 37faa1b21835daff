"""kill -9 of every process of a fleet at a random moment, then one call: all work gets done.

`make chaos-bursts` makes it a campaign of 200 bursts per store and prints how long it took."""

from __future__ import annotations

import json
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

import apsw
import psycopg
import pytest
from campaign import CHUNK, HANDLER, SEED, check_results, chunks, fleet_at, name_of, picture, report
from fleets import POOL, Fleet, kill
from servers import postgres, redis

import sprat
from sprat.core.record import Record

BURSTS = int(os.environ.get("SPRAT_CHAOS_BURSTS", "2"))
HEARTBEAT = 0.5
LEASE = 2 * HEARTBEAT
PROMISE = LEASE + 2.0 + 3.0  # to the first start: the last part is for a cold start
SLACK = 6.0  # on a busy machine; what takes longer is stuck
QUIET_LOOKS = 3  # without a process: one that is being started may not show its environment yet
CALLS = (
    "push",
    "push",
    "push",
    "push command",
    "push command",
    "check",
    "check",
    "watch",
    "result",
)


class Plan(Record):
    """One burst, drawn from the seed and its number."""

    jobs: tuple[dict[str, object], ...]
    together: bool  # one push for all
    settings: dict[str, object]
    kill_after: float
    pause: float
    call: str

    @property
    def seconds(self) -> float:
        return sum(job["seconds"] for job in self.jobs)  # type: ignore[misc]


def plan(kind: str, number: int) -> Plan:
    chance = random.Random(f"{SEED} {kind} {number}")
    jobs = tuple(
        {"seconds": chance.uniform(0.02, 0.1), "attempt": chance.choice((1, 1, 1, 2))}
        for _ in range(chance.randint(10, 30))
    )
    settings = {
        "isolation": chance.choice(("none", "process")),
        "claim_ahead": chance.choice((1, 20)),
        "max_workers": chance.randint(2, 4),
        "retry_base_seconds": chance.choice((0.05, 0.5)),
    }
    return Plan(
        jobs=jobs,
        together=chance.random() < 0.5,
        settings=settings,
        kill_after=chance.uniform(0.0, 1.5),
        pause=chance.uniform(0.0, 2 * LEASE),
        call=chance.choice(CALLS),
    )


# -- stores -----------------------------------------------------------------------------------


@contextmanager
def store_of(kind: str, place: Path) -> Iterator[str]:
    """The URL of a store for one burst alone."""
    name = f"burst_{uuid.uuid4().hex}"
    if kind == "redis":
        server = redis.shared_server()
        yield f"{server.url}?store={name}"
        server.forget(f"{{{name}}}:*")
    elif kind == "postgres":
        shared = postgres.shared_url()
        with psycopg.connect(shared, autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
            yield f"{shared.rpartition('/')[0]}/{name}"
            db.execute(f"DROP DATABASE {name} WITH (FORCE)")
    else:
        yield f"sqlite:///{place}/fleet.db"


def reboot(fleet: Fleet) -> None:
    """As far as the store can see."""
    db = apsw.Connection(str(fleet.place / "fleet.db"))
    db.set_busy_timeout(10_000)
    db.execute("UPDATE meta SET value = 'another-boot' WHERE name = 'clock_boot'")
    db.close()


# -- one burst --------------------------------------------------------------------------------


def push_all(fleet: Fleet, plan: Plan) -> set[str]:
    jobs = [fleet.job(**job) for job in plan.jobs]
    if plan.together:
        return set(fleet.pool.push_many(jobs, max_retries=6))
    return {fleet.pool.push(job, max_retries=6) for job in jobs}


def kill_all(fleet: Fleet, chance: random.Random) -> None:
    """In random order, until none is left: some start others meanwhile."""
    quiet = 0
    while quiet < QUIET_LOOKS:
        found = list(fleet.processes())
        chance.shuffle(found)
        for pid in found:
            kill(pid, signal.SIGKILL)
        quiet = 0 if found else quiet + 1
        time.sleep(0.005)


def call(fleet: Fleet, plan: Plan, pushed: set[str]) -> set[str]:
    """The one call; the ids that it pushed."""
    job = fleet.job(seconds=0.02)
    if plan.call == "push":
        return {fleet.pool.push(job)}
    if plan.call == "push command":
        return {command(fleet, "push", POOL, json.dumps(job)).strip()}
    if plan.call == "check":
        command(fleet, "check", POOL)
    elif plan.call == "watch":
        command(fleet, "watch", POOL, "--timeout", "0.5", codes=(0, 1))
    else:
        wait_for_result(fleet, min(pushed, key=lambda one: fleet.item(one).status == "done"))
    return set()


def command(fleet: Fleet, *words: str, codes: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "sprat", *words, "--url", fleet.url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in codes, done.stderr
    return done.stdout


def wait_for_result(fleet: Fleet, item_id: str) -> None:
    try:
        sprat.result(item_id, timeout=0.5, store=fleet.store)
    except TimeoutError:
        pass  # it was long enough to call


def run(fleet: Fleet, kind: str, number: int) -> None:
    planned = plan(kind, number)
    fleet.set(handler=HANDLER, heartbeat_seconds=HEARTBEAT, start_on_push=True, **planned.settings)
    pushed = push_all(fleet, planned)
    time.sleep(planned.kill_after)
    kill_all(fleet, random.Random(number))
    left = len(pushed) - fleet.pool.counts().done
    time.sleep(planned.pause)
    if kind == "reboot":
        reboot(fleet)
    called_at = time.time()
    pushed |= call(fleet, planned, pushed)
    is_done = until_done(fleet, len(pushed), called_at + SLACK * (PROMISE + planned.seconds))
    took = time.time() - called_at
    starts = [float(at) for _, _, _, at in fleet.happened("start") if float(at) > called_at]
    first = min(starts) - called_at if starts and left else None
    report(
        {
            "kind": f"bursts {kind}",
            "number": number,
            "call": planned.call,
            "n_with_work_left": int(left > 0),
            "n_late": int(first is not None and first > PROMISE),
            "n_stuck": int(not is_done),
            "s_first_start": first,
            "s_all_done": took if left else None,
        }
    )
    assert is_done, f"{kind} {number} is stuck: {planned}\n  {picture(fleet)}"
    items = check_results(fleet, pushed)
    fleet.until_gone()
    assert check_results(fleet, pushed) == items, "a late process changed what was done"


def until_done(fleet: Fleet, n: int, end: float) -> bool:
    while fleet.pool.counts().done < n:
        if time.time() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.timeout(60 + 150 * CHUNK)
@pytest.mark.parametrize("chunk", chunks(BURSTS), ids=name_of)
@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis", "reboot"])
def test_after_kill_9_of_everything_one_call_gets_all_work_done(
    kind: str, chunk: range, tmp_path: Path
) -> None:
    problems = []
    for number in chunk:
        place = tmp_path / f"burst-{number}"
        place.mkdir()
        with store_of(kind, place) as url, fleet_at(place, url) as fleet:
            try:
                run(fleet, kind, number)
            except AssertionError as problem:
                problems.append(str(problem))
    assert not problems, "\n\n".join(problems)
