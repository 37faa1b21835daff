"""A trigger_registry.yml with the files of three machines beside it, used as they were printed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fleets import Fleet, eventually

from sprat.core.model import Decision

PRINTED = Path(__file__).parent / "registry"
POOL = "paper_analysis"
PROCESSOR = """\
data:
  states:
    start: {type: initial, transitions: [{to: end}]}
    end: {type: final, output: {echo: "{{ input.job.n }}"}}
"""


@pytest.fixture
def place(fleet: Fleet) -> Path:
    """The printed files, and a machine that works on the jobs: the pool has no handler."""
    place = fleet.place / "config"
    shutil.copytree(PRINTED, place)
    (place / "actual_job_processor.yml").write_text(PROCESSOR)
    return place


def sprat(fleet: Fleet, place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sprat", *arguments],
        env={**os.environ, "SPRAT_URL": fleet.url},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=place,
    )


def until_done(fleet: Fleet, n: int) -> None:
    eventually(lambda: fleet.store.pool(POOL).counts().done == n, fleet.store.pool(POOL).counts)


def test_the_printed_files_work_together(fleet: Fleet, place: Path) -> None:
    pool = fleet.store.pool(POOL)
    first = pool.push_many([{"n": n} for n in range(3)])
    applied = sprat(fleet, place, "apply", "trigger_registry.yml")
    assert applied.returncode == 0, applied.stderr
    assert applied.stdout.splitlines() == [
        "trigger cron_5min: changed: new; machine parallelization_checker.yml",
        "trigger local_subprocess: changed: new; machine parallelization_checker.yml",
    ]
    fired = sprat(fleet, place, "triggers", "fire", "cron_5min")
    assert (fired.returncode, fired.stdout) == (0, "cron_5min: done\n"), fired.stderr
    until_done(fleet, 3)
    assert [pool.get(item).result for item in first] == [{"echo": n} for n in range(3)]
    pushed = sprat(fleet, place, "push", POOL, '{"n": 9}')  # the event starts the machine
    until_done(fleet, 4)
    assert pool.get(pushed.stdout.strip()).result == {"echo": 9}
    fleet.until_gone()
    assert {worker.status for worker in fleet.store.workers.list(pool_id=POOL)} == {"terminated"}
    reaped = sprat(
        fleet, place, "run", "stale_worker_reaper.yml", "--input", json.dumps({"pool_id": POOL})
    )
    assert json.loads(reaped.stdout) == {"reaped_count": 0}


def fail_launches(fleet: Fleet, n: int) -> None:
    pool = fleet.store.pool(POOL)
    decision = Decision(
        pool=POOL,
        policy="test",
        direction="up",
        current=0,
        desired=n,
        reason="a test",
        launch=n,
        max_workers=n,
    )
    recorded = pool.record(decision, version=pool.observe().version)
    assert recorded is not None
    for worker_id in recorded.launched:
        fleet.store.workers.update_status(worker_id, "lost", reason="a test")


def test_a_run_reports_what_was_launched_and_why_it_was_not_more(fleet: Fleet, place: Path) -> None:
    pool = fleet.store.pool(POOL)
    pool.configure(start_on_push=False)
    pool.push_many([{"n": n} for n in range(3)])
    given = ("--input", json.dumps({"pool_id": POOL}))
    fail_launches(fleet, 8)  # the next one has to wait a minute
    ran = sprat(fleet, place, "run", "parallelization_checker.yml", *given)
    output = json.loads(ran.stdout)
    assert (output["spawned"], output["asked"]) == (0, 10)
    assert output["reason"].startswith("8 launches in a row did not come to work: the next try")
    assert ran.stderr == f"sprat: launched 0 of 10 workers: {output['reason']}\n"
    assert ran.returncode == 0
    assert fleet.store.workers.list(pool_id=POOL, status="active") == []
