"""Events fire triggers where they happen: with real workers, deaths and storms of pushes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest
from fleets import POOL, Fleet, eventually, kill
from processes import Together, at_once

from sprat.config.trigger import Trigger
from sprat.store.open_store import open_store
from sprat.triggers import registry
from sprat.triggers.tick import tick

COUNT = """\
import json, os, sys, sprat
given = json.load(sys.stdin)
store = sprat.open_store(os.environ["SPRAT_URL"])
counts = store.pool(given["pool_id"]).counts()
with open(sys.argv[1], "a") as file:
    file.write(f"{given['event']} {counts.total} {os.environ['SPRAT_TRIGGER']}\\n")
"""


def listen(fleet: Fleet, *events: str, **about: object) -> Path:
    """Register a trigger that writes down each event and how many items there are by then."""
    said = fleet.place / "events"
    values = {"name": "listener", "type": "subprocess", "pool": POOL, "on": events, **about}
    command = [sys.executable, "-c", COUNT, str(said)]
    registry.save(fleet.store, Trigger(command=command, **values))  # type: ignore[arg-type]
    registry.link(fleet.store)
    return said


def lines(said: Path) -> list[list[str]]:
    return [line.split() for line in said.read_text().splitlines()] if said.exists() else []


def events(said: Path) -> list[str]:
    return [line[0] for line in lines(said)]


def test_the_last_item_done_empties_the_pool_and_each_worker_is_done(fleet: Fleet) -> None:
    fleet.set(start_on_push=True, max_workers=3, max_jobs=1)
    said = listen(fleet, "pool_empty", "worker_done")
    fleet.pool.push_many([fleet.job()] * 12)
    fleet.until_done(12)
    eventually(lambda: "pool_empty" in events(said) and "worker_done" in events(said))
    fleet.until_gone()
    assert events(said).count("pool_empty") == 1
    assert 1 <= events(said).count("worker_done") <= 12


def test_a_worker_that_stays_still_tells_that_the_pool_is_empty(fleet: Fleet) -> None:
    fleet.set(start_on_push=True, idle_seconds=60.0, max_workers=2, isolation="none")
    fleet.may_stay = True
    said = listen(fleet, "pool_empty")
    for wave in (1, 2):
        fleet.pool.push_many([fleet.job()] * 20)
        fleet.until_done(20 * wave)
        eventually(lambda wave=wave: len(lines(said)) == wave)  # type: ignore[misc]
    assert events(said) == ["pool_empty", "pool_empty"]


def test_a_killed_worker_is_told_at_once(fleet: Fleet, tmp_path: Path) -> None:
    fleet.set(handler="jobs:wait_for_file", heartbeat_seconds=60.0, max_workers=1)
    said = listen(fleet, "worker_lost")
    item = fleet.push(file=str(tmp_path / "go"))
    fleet.check()
    worker = fleet.worker_of(item)
    assert worker.pid is not None
    began = time.monotonic()
    kill(worker.pid, signal.SIGKILL)
    eventually(lambda: events(said) == ["worker_lost"])
    assert time.monotonic() - began < 25, "a lease is 120 seconds"
    (tmp_path / "go").touch()
    fleet.until_status(item, "done")


def test_a_worker_that_was_told_to_leave_is_not_done(fleet: Fleet) -> None:
    fleet.set(idle_seconds=60.0, min_workers=1, max_workers=1)
    said = listen(fleet, "worker_done")
    fleet.check()
    [worker] = eventually(lambda: fleet.workers("active"))
    fleet.store.workers.update_status(worker, "terminating")
    fleet.until_gone()
    assert events(said) == []


@pytest.mark.parametrize("kind", ["subprocess", "in_loop"])
def test_a_thousand_pushes_cause_a_few_runs_and_the_last_one_sees_all(
    fleet: Fleet, kind: str, record_property: pytest.RecordProperty
) -> None:
    fleet.set(handler=None, start_on_push=False)
    said = listen(fleet, "work_added", type=kind)
    slowest = max(at_once(4, _push_many_alone, fleet.url, fleet.place))
    eventually(lambda: int(lines(said)[-1][1]) == 1000, what=lambda: lines(said)[-3:])
    runs = len(lines(said))
    record_property("runs", runs)
    record_property("slowest_push_seconds", slowest)
    assert 1 <= runs <= 30
    fleet.until_gone()


def _push_many_alone(place: int, together: Together, url: str, _: Path) -> float:
    slowest = 0.0
    with open_store(url) as store:
        pool = store.pool(POOL)
        together()
        for n in range(250):
            began = time.monotonic()
            pool.push({"n": n})
            slowest = max(slowest, time.monotonic() - began)
    return slowest


@pytest.mark.parametrize("kind", ["subprocess", "in_loop"])
def test_a_pass_on_work_added_starts_the_fleet(fleet: Fleet, kind: str) -> None:
    fleet.set(start_on_push=False, max_workers=3)
    registry.save(fleet.store, Trigger(name="check", type=kind, on=("work_added",)))
    registry.link(fleet.store)
    for n in range(30):
        fleet.push(say=n)
    fleet.until_done(30)
    assert set(fleet.starts().values()) == {1}


@pytest.mark.parametrize("kind", ["subprocess", "in_loop"])
def test_push_does_not_wait_for_a_slow_trigger(fleet: Fleet, tmp_path: Path, kind: str) -> None:
    fleet.set(handler=None, start_on_push=False)
    go = tmp_path / "go"
    script = f"while [ ! -e {go} ]; do sleep 0.05; done; echo x >> {tmp_path}/events"
    registry.save(
        fleet.store,
        Trigger(name="slow", type=kind, on=("work_added",), command=["/bin/sh", "-c", script]),
    )
    registry.link(fleet.store)
    for _ in range(20):
        fleet.pool.push({})
    assert not (tmp_path / "events").exists()  # all pushes are back, and it has not even begun
    go.touch()
    eventually(lambda: lines(tmp_path / "events"))
    fleet.until_gone()


def test_a_program_that_ends_after_its_push_leaves_no_event_behind(fleet: Fleet) -> None:
    fleet.set(handler=None, start_on_push=False)
    said = listen(fleet, "work_added", type="in_loop")
    program = f"import sprat; sprat.open_store({fleet.url!r}).pool({POOL!r}).push({{}})"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env=dict(os.environ))
    assert lines(said) == [["work_added", "1", "listener"]]


def test_a_broken_trigger_never_fails_the_push(fleet: Fleet, tmp_path: Path) -> None:
    fleet.set(handler=None, start_on_push=False)
    registry.save(
        fleet.store,
        Trigger(name="broken", type="in_loop", on=("work_added",), command=["/nowhere"]),
    )
    registry.link(fleet.store)
    fleet.store.backend.put("trigger", "unreadable", "[]", None, None)
    fleet.set(events={"work_added": ["broken", "gone"]})
    assert fleet.pool.push({})


def test_a_tick_wakes_a_pool_whose_far_delayed_work_is_due(fleet: Fleet) -> None:
    fleet.set(start_on_push=True)
    item = fleet.pool.push(fleet.job(), delay=7200)
    fleet.until_gone()  # nobody waits for so long
    assert tick(fleet.store).woken == ()
    db = apsw.Connection(str(fleet.place / "fleet.db"))
    db.set_busy_timeout(10_000)
    db.execute("UPDATE meta SET value = value + 7200 WHERE name = 'clock_base'")
    db.close()
    assert tick(fleet.store).woken == (POOL,)
    fleet.until_status(item, "done")


def test_an_event_without_triggers_asks_the_store_nothing(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    backend = fleet.store.backend
    settings = fleet.pool.state().settings
    with monkeypatch.context() as patched:
        for verb in ("document", "documents", "put", "counts", "request_check"):
            patched.setattr(backend, verb, lambda *_, verb=verb: asked.append(verb))
        for event in ("work_added", "worker_done", "worker_lost", "pool_empty"):
            fleet.store.happened(event, POOL, settings)
    assert asked == []
