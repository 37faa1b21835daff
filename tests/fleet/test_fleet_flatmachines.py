"""Machines of flatmachines run the jobs of a sprat pool, and launch no more than it allows."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from fleets import POOL, Fleet
from processes import Together, at_once, beside, hear

from sprat.flatmachines import SpratHooks
from sprat.flatmachines import run as run_here
from sprat.fleet import reaper
from sprat.store.open_store import open_store

MACHINES = Path(__file__).parents[1] / "flatmachines"


@pytest.fixture
def machines(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """A pool without a processor of its own: machines do the work."""
    monkeypatch.syspath_prepend(str(MACHINES))
    fleet.set(handler=None, directory=str(MACHINES), start_on_push=False, max_workers=3)
    return fleet


def run(fleet: Fleet, machine: str, **given: object) -> Any:
    """A machine in a process of its own, as a user starts it: what it put out."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sprat.flatmachines", "--config", str(MACHINES / machine)),
            *("--hooks", "machine_hooks:hooks", "--input", json.dumps({"pool_id": POOL, **given})),
        ],
        env={**os.environ, "SPRAT_URL": fleet.url, "PYTHONPATH": str(MACHINES)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=fleet.place,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_worker_machine_runs_one_job_of_the_pool(machines: Fleet) -> None:
    item = machines.pool.push({"n": 7})
    assert run(machines, "job_worker.yml")["job_id"] == item
    assert machines.item(item).status == "done"
    assert machines.item(item).result == {"echo": 7}
    assert [w.status for w in machines.workers()] == ["terminated"]
    assert run(machines, "job_worker.yml") == {"status": "no_work_available"}


def test_a_job_that_fails_keeps_its_error_and_is_tried_again(machines: Fleet) -> None:
    item = machines.pool.push({"n": 1, "fail": True}, max_retries=2)
    run(machines, "job_worker.yml")
    assert (machines.item(item).status, machines.item(item).error) == ("pending", "no good")
    run(machines, "job_worker.yml")
    assert machines.item(item).status == "poisoned"


def test_a_checker_machine_spawns_workers_and_they_do_the_work(machines: Fleet) -> None:
    for n in range(6):
        machines.pool.push({"n": n})
    worker = str(MACHINES / "job_worker.yml")
    for done in (3, 6):
        said = run(machines, "checker.yml", max_workers=3, worker_config_path=worker)
        assert int(said["spawned"]) == 3
        machines.until_done(done)
        machines.until_gone()
    assert {item.result["echo"] for item in machines.pool.items("done")} == set(range(6))


def test_the_input_of_a_machine_is_in_no_command_line(machines: Fleet) -> None:
    item = machines.pool.push({"n": 1, "argv": True})
    worker = str(MACHINES / "job_worker.yml")
    run(machines, "checker.yml", max_workers=1, worker_config_path=worker)
    machines.until_done(1)
    argv = machines.item(item).result["argv"]
    assert argv[-2:] == ["--input", "-"]
    assert not any(POOL in word or "pool_id" in word for word in argv if word != worker)


@pytest.mark.timeout(240)
def test_many_checkers_at_once_never_launch_more_than_the_pool_allows(machines: Fleet) -> None:
    for n in range(20):
        machines.pool.push({"n": n, "seconds": 3})
    seen = Watch(machines)
    asked = at_once(4, _check, machines.url, str(machines.place))
    assert sum(asked) == 3
    machines.until_gone()
    assert seen.stop() <= 3


def _check(place: int, together: Together, url: str, where: str) -> int:
    os.chdir(where)
    with open_store(url) as store:
        together()
        given = {"pool_id": POOL, "max_workers": 3}
        given["worker_config_path"] = str(MACHINES / "job_worker.yml")
        output = run_here(store, str(MACHINES / "checker.yml"), given, hooks="machine_hooks:hooks")
        return int(output["spawned"])


class Watch:
    """The most workers that were there at a time. A process looks, not a thread: whoever is forked
    while a thread imports something hangs at its own imports."""

    def __init__(self, fleet: Fleet) -> None:
        self._process, self._pipe = beside(_watch, fleet.url)
        hear(self._pipe)  # it looks

    def stop(self) -> int:
        self._pipe.send("enough")
        most = int(hear(self._pipe))
        self._process.join()
        return most


def _watch(pipe: Connection, url: str) -> None:
    most = 0
    with open_store(url) as store:
        pipe.send("looking")
        while not pipe.poll(0.05):
            seen = store.pool(POOL).observe()
            most = max(most, seen.active + seen.starting)
        pipe.send(most)


def test_launch_in_a_machine_takes_a_slot_or_is_left_out(machines: Fleet) -> None:
    for n in range(8):
        machines.pool.push({"n": n})
    run(machines, "launching_checker.yml")
    assert sum(len(d.launched) for d in machines.pool.decisions()) <= 5
    machines.until_gone()
    done = machines.pool.counts().done
    assert 3 <= done <= 5
    assert not list(machines.place.glob("sprat-machine-*"))


def test_a_pool_with_a_processor_gets_workers_of_sprat(fleet: Fleet) -> None:
    fleet.set(handler="machine_hooks:analyze", directory=str(MACHINES), start_on_push=False)
    for n in range(5):
        fleet.pool.push({"n": n})
    run(fleet, "launching_checker.yml")
    fleet.until_done(5)
    assert {item.result["echo"] for item in fleet.pool.items("done")} == set(range(5))


def test_a_state_that_takes_longer_than_the_lease_is_not_taken_for_dead(machines: Fleet) -> None:
    hooks = SpratHooks(machines.store, lease_seconds=1.0)

    async def work() -> None:
        context: dict[str, Any] = {"pool_id": POOL, "worker_id": "w1"}
        await hooks.on_action("s", "register_worker", context)
        await hooks.on_action("s", "claim_job", context)
        await asyncio.sleep(3.0)
        assert reaper.reap(machines.store).workers == ()
        await hooks.on_action("s", "complete_job", {**context, "result": 1})
        await hooks.on_action("s", "deregister_worker", context)

    item = machines.pool.push({"n": 1})
    asyncio.run(work())
    assert machines.item(item).status == "done"
    [worker] = machines.workers()
    assert worker.status == "terminated"
