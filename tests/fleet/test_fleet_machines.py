"""Machines with real processes: launches within the maximum, workers, processors of pools."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fleets import POOL, Fleet, eventually, kill

from sprat.core import model

# The machines of the source document, in other words.
CHECKER = """\
data:
  name: look_and_launch
  context: {pool_id: "{{ input.pool_id }}", max_workers: "{{ input.max_workers | default(10) }}"}
  states:
    start: {type: initial, transitions: [{to: look}]}
    look:
      action: get_pool_state
      output_to_context:
        wanted: "{{ [output.queue_depth - output.active_workers, context.max_workers, 0] | max }}"
      transitions:
        - {condition: "context.wanted > 0", to: launch}
        - {to: done}
    launch:
      foreach: "{{ range(context.wanted) }}"
      launch: take_one
      launch_input: {pool_id: "{{ context.pool_id }}"}
      output_to_context: {launched: "{{ output.launched }}", ids: "{{ output.execution_ids }}"}
      transitions: [{to: done}]
    done: {type: final, output: {wanted: "{{ context.wanted }}", launched: "{{ context.launched }}",
      ids: "{{ context.ids }}"}}
"""
WORKER = """\
data:
  name: take_one
  settings: {heartbeat_interval: 5}
  context: {pool_id: "{{ input.pool_id }}"}
  states:
    start: {type: initial, transitions: [{to: take}]}
    take:
      action: claim_job
      output_to_context: {job: "{{ output.job }}", job_id: "{{ output.job_id }}"}
      transitions:
        - {condition: "context.job == null", to: nothing}
        - {to: process}
    process:
      machine: actual_job_processor
      input: {job: "{{ context.job }}"}
      output_to_context: {result: "{{ output }}"}
      on_error: wrong
      transitions: [{to: settle}]
    settle: {action: complete_job, transitions: [{to: done}]}
    wrong: {action: fail_job, transitions: [{to: done}]}
    nothing: {type: final, output: {status: no_work_available}}
    done: {type: final, output: {result: "{{ context.result }}"}}
"""
REAPER = """\
data:
  name: find_and_reap
  context: {pool_id: "{{ input.pool_id }}",
    stale_threshold_seconds: "{{ input.stale_threshold_seconds | default(60) }}"}
  states:
    start: {type: initial, transitions: [{to: find}]}
    find:
      action: list_stale_workers
      output_to_context: {stale: "{{ output.workers }}"}
      transitions:
        - {condition: "context.stale | length == 0", to: done}
        - {to: reap}
    reap: {foreach: "{{ context.stale }}", as: worker, action: reap_worker,
      transitions: [{to: done}]}
    done: {type: final, output: {reaped_count: "{{ context.stale | length }}"}}
"""


@pytest.fixture
def machines(fleet: Fleet) -> Fleet:
    """The fleet's directory with these machines; the pool's own handler is their processor."""
    for name, text in (("checker", CHECKER), ("take_one", WORKER), ("reaper", REAPER)):
        (fleet.place / f"{name}.yml").write_text(text)
    return fleet


def run(fleet: Fleet, name: str, **given: Any) -> Any:
    """`python -m sprat.run`, as the document has it."""
    ran = subprocess.run(
        [sys.executable, "-m", "sprat.run", "--machine", name,
         "--execution-id", os.urandom(4).hex(), "--input", json.dumps({"pool_id": POOL, **given})],
        cwd=fleet.place, env={**os.environ, "SPRAT_URL": fleet.url}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_the_nine_steps_by_machines_only(machines: Fleet) -> None:
    fleet = machines

    # 1. Seed 10 jobs.
    ids = [fleet.push(say=n, seconds=0.2) for n in range(10)]

    # 2. Run the checker with at most 3 workers. Its formula wants more.
    checked = run(fleet, "checker", max_workers=3)
    assert (checked["wanted"], checked["launched"]) == (10, 3)

    # 3. Three workers appear, claim, process and exit.
    eventually(
        lambda: all(
            fleet.store.workers.get(worker_id).status == "terminated"
            for worker_id in checked["ids"]
        )
    )

    # 4. Run the checker again: never more than three, until nothing is left.
    while fleet.pool.size():
        run(fleet, "checker", max_workers=3)
        assert len(fleet.workers("starting", "active")) <= 3
    fleet.until_done(10)

    # 5. All 10 are done, each by one start, in a worker of its own.
    assert [fleet.item(i).result for i in ids] == list(range(10))
    assert set(fleet.starts().values()) == {1}
    assert len({fleet.item(i).claimed_by for i in ids}) == 10
    fleet.until_gone()
    assert {worker.status for worker in fleet.workers()} == {"terminated"}

    # 6. Kill a worker in the middle of its job, and its fork server: nobody is left to notice.
    fleet.set(handler="jobs:slow_at_first")
    slow = fleet.push()
    run(fleet, "checker", max_workers=1)
    fleet.until("start", 11)
    victim = fleet.worker_of(slow)
    for server in fleet.fork_servers():
        kill(server, signal.SIGKILL)
    kill(victim.pid, signal.SIGKILL)
    fleet.until_gone()
    assert fleet.item(slow).status == "claimed"

    # 7. Run the reaper, once the worker is stale.
    eventually(lambda: run(fleet, "reaper", stale_threshold_seconds=2)["reaped_count"])

    # 8. The job is back in the pool, the worker is lost, and the next worker does the job.
    assert fleet.item(slow).status == "pending"
    assert fleet.store.workers.get(victim.worker_id).status == "lost"
    run(fleet, "checker", max_workers=1)
    assert fleet.until_status(slow, "done").result == 2

    # 9. A job that fails max_retries times is poisoned.
    fleet.until_gone()
    fleet.set(handler="jobs:fail")
    bad = fleet.push(max_retries=3)
    run(fleet, "checker", max_workers=1)
    poisoned = fleet.until_status(bad, "poisoned")
    assert poisoned.attempts == fleet.starts()[bad] == 3
    assert poisoned.error.startswith("ValueError: it never works")


def test_no_formula_launches_beyond_the_maximum(machines: Fleet) -> None:
    """Eight checkers at once, each of which wants a hundred workers."""
    fleet = machines
    fleet.set(max_workers=4, handler="jobs:echo")
    for n in range(12):
        fleet.push(say=n, seconds=0.3)
    text = CHECKER.replace("range(context.wanted)", "range(100)")
    (fleet.place / "checker.yml").write_text(text)
    command = [sys.executable, "-m", "sprat.run", "--machine", "checker"]
    given = json.dumps({"pool_id": POOL, "max_workers": 100})
    running = [
        subprocess.Popen(
            [*command, "--input", given], cwd=fleet.place, stdout=subprocess.PIPE,
            env={**os.environ, "SPRAT_URL": fleet.url},
        )
        for _ in range(8)
    ]  # fmt: skip
    most = 0
    while fleet.pool.counts().done < 12:
        most = max(most, len(fleet.workers("starting", "active")))
        assert most <= 4
    said = [json.loads(process.communicate()[0])["launched"] for process in running]
    assert sum(said) >= 1
    assert all(n <= 4 for n in said)
    launches = [d for d in fleet.pool.decisions(limit=100) if d.policy == "machine"]
    assert launches
    assert all("look_and_launch asked for 100" in d.reason for d in launches)


def test_a_launch_is_recorded_like_a_scaling_decision(machines: Fleet) -> None:
    fleet = machines
    fleet.push(say=1)
    found = run(fleet, "checker", max_workers=2)
    fleet.until_done(1)
    decision = fleet.pool.decisions(limit=100)[-1]
    assert decision.launched == tuple(found["ids"])
    assert decision.reason == "look_and_launch asked for 2: 0 workers, at most 2"
    assert (decision.policy, decision.current, decision.desired) == ("machine", 0, 2)


def test_a_machine_worker_that_is_killed_gives_its_job_to_the_next_one_at_once(
    machines: Fleet,
) -> None:
    fleet = machines
    fleet.set(handler="jobs:slow_at_first")
    slow = fleet.push()
    run(fleet, "checker", max_workers=1)
    fleet.until("start", 1)
    victim = fleet.worker_of(slow)
    kill(victim.pid, signal.SIGKILL)
    assert fleet.until_status(slow, "done").result == 2
    assert fleet.store.workers.get(victim.worker_id).status == "lost"


def test_a_machine_worker_outlives_a_job_that_never_lets_go(machines: Fleet) -> None:
    """Longer than its lease, without a moment for anybody else in its process."""
    fleet = machines
    text = WORKER.replace("heartbeat_interval: 5", "heartbeat_interval: 1")
    (fleet.place / "take_one.yml").write_text(text)
    fleet.set(handler="jobs:hold_the_interpreter")
    item = fleet.push(seconds=4)
    run(fleet, "checker", max_workers=1)
    done = fleet.until_status(item, "done")
    assert done.attempts == 1
    assert [worker.status for worker in fleet.workers()] == ["terminated"]


PROCESSOR = """\
data:
  name: analyze
  states:
    start: {type: initial, transitions: [{to: read}]}
    read: {action: "jobs:echo", input: {log: "{{ input.log }}", say: "{{ input.say }}"},
      output_to_context: {said: "{{ output }}"},
      transitions: [{to: end}]}
    end: {type: final, output: {said: "{{ context.said }}", whole: "{{ input.job.say }}"}}
"""


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_a_machine_is_the_processor_of_a_pool(fleet: Fleet, isolation: str) -> None:
    (fleet.place / "analyze.yml").write_text(PROCESSOR)
    here = str(Path(__file__).parent)
    (fleet.place / "jobs.py").write_text((Path(here) / "jobs.py").read_text())
    fleet.set(handler=None, machine="analyze.yml", directory=str(fleet.place), isolation=isolation)
    ids = [fleet.push(say=n) for n in range(5)]
    fleet.check()
    fleet.until_done(5)
    assert [fleet.item(i).result for i in ids] == [{"said": n, "whole": n} for n in range(5)]
    assert set(fleet.starts().values()) == {1}


def test_a_machine_processor_that_is_killed_goes_on_in_the_next_attempt(fleet: Fleet) -> None:
    (fleet.place / "analyze.yml").write_text(
        """\
data:
  name: analyze
  states:
    start: {type: initial, action: "jobs:echo", input: {log: "{{ input.log }}", say: 1},
      transitions: [{to: kill}]}
    kill: {action: "jobs:kill_at_first", input: {log: "{{ input.log }}"}, transitions: [{to: end}]}
    end: {type: final, output: done}
"""
    )
    jobs = (Path(__file__).parent / "jobs.py").read_text()
    (fleet.place / "jobs.py").write_text(jobs)
    fleet.set(handler=None, machine="analyze.yml", directory=str(fleet.place))
    item = fleet.push()
    fleet.check()
    assert fleet.until_status(item, "done").result == "done"
    # The first state ran in the first attempt alone; the second one in both.
    assert len(fleet.happened("end")) == 1
    assert [line[1] for line in fleet.happened("start")] == ["1", "1", "2"]


@pytest.mark.parametrize("how", ["command", "machine"])
def test_our_machines_leave_the_same_history_as_the_commands(
    fleet: Fleet, how: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is in the store afterwards is what a person would have had it done by hand."""
    assert history(fleet, how) == EXPECTED


EXPECTED: list[Any] = [
    (model.PoolSettings().policy, "up", 0, 2,
     "2 waiting, 0 active (0 idle), 0 starting, maximum 10: launch 2"),
    [("done", 1, 0, None), ("poisoned", 1, None, "ValueError: it never works")],
    ["lost", "terminated"],
]  # fmt: skip


def history(fleet: Fleet, how: str) -> Any:
    """A pass, a worker of two jobs (one of which fails), and a reaper for one that never worked."""
    fleet.may_stay = True
    fleet.set(handler="jobs:echo_or_fail", max_jobs=1, idle_seconds=0.1, launcher="process")
    fleet.push(say=0, max_retries=1)
    fleet.push(fail=True, max_retries=1)
    commands = {
        "check": ["check", POOL],
        "work": ["work", POOL, "--max-jobs", "2", "--worker-id", "w"],
        "reap": ["reap", POOL, "--threshold", "0.5"],
    }
    runs = {
        "check": ["run", "checker", "--input", json.dumps({"pool_id": POOL})],
        "work": ["run", "worker", "--execution-id", "w", "--input",
                 json.dumps({"pool_id": POOL, "max_jobs": 2})],
        "reap": ["run", "reaper", "--input",
                 json.dumps({"pool_id": POOL, "stale_threshold_seconds": 0.5})],
    }  # fmt: skip
    chosen = commands if how == "command" else runs
    sprat(fleet, chosen["work"])
    fleet.store.workers.register(
        model.WorkerRegistration(worker_id="dead", pool_id=POOL, lease_seconds=600)
    )
    eventually(lambda: fleet.store.workers.list(stale_threshold_seconds=0.5, status="active"))
    sprat(fleet, chosen["reap"])
    items = [
        (i.status, i.attempts, i.result, i.error and i.error.partition("\n")[0])
        for i in fleet.pool.items()
    ]
    workers = sorted(w.status for w in fleet.workers())
    for n in range(2):
        fleet.push(say=n)
    sprat(fleet, chosen["check"])
    first = fleet.pool.decisions(limit=100)[-1]
    fleet.until_gone()
    decision = (first.policy, first.direction, first.current, first.desired, first.reason)
    return [decision, items, workers]


def sprat(fleet: Fleet, arguments: list[str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "sprat", *arguments], cwd=fleet.place, capture_output=True,
        text=True, env={**os.environ, "SPRAT_URL": fleet.url}, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_a_launched_worker_goes_on_with_a_job_where_the_last_one_was_killed(
    machines: Fleet,
) -> None:
    """The machine that processes the job is bound by a file beside the worker's."""
    fleet = machines
    text = """\
data:
  name: two_steps
  states:
    start: {type: initial, action: "jobs:echo", input: {log: "{{ input.job.log }}", say: 1},
      transitions: [{to: stop}]}
    stop: {wait: "{{ input.job.seconds }}", transitions: [{to: end}]}
    end: {type: final, output: done}
"""
    (fleet.place / "actual_job_processor.yml").write_text(text.replace("jobs:echo", "notes:write"))
    (fleet.place / "notes.py").write_text(
        "def write(given):\n    with open(given['log'], 'a') as log: log.write('start x\\n')\n"
    )
    item = fleet.push(seconds=1.5)
    run(fleet, "checker", max_workers=1)
    fleet.until("start", 1)
    eventually(lambda: fleet.item(item).checkpoint)
    kill(fleet.worker_of(item).pid, signal.SIGKILL)
    done = fleet.until_status(item, "done")
    assert (done.result, done.attempts) == ("done", 2)
    assert len(fleet.happened("start")) == 1


def test_a_worker_machine_that_is_told_to_leave_finishes_its_job(machines: Fleet) -> None:
    fleet = machines
    fleet.set(handler="jobs:echo")
    item = fleet.push(say=7, seconds=1)
    fleet.push(say=8)
    process = subprocess.Popen(
        [sys.executable, "-m", "sprat", "run", "worker", "--execution-id", "w-1", "--input",
         json.dumps({"pool_id": POOL})],
        cwd=fleet.place, env={**os.environ, "SPRAT_URL": fleet.url}, stdout=subprocess.PIPE,
    )  # fmt: skip
    fleet.until("start", 1)
    process.send_signal(signal.SIGTERM)
    assert json.loads(process.communicate()[0]) == {"worker_id": "w-1", "jobs": 1, "failed": 0}
    assert fleet.item(item).result == 7
    assert fleet.pool.size() == 1
    assert fleet.store.workers.get("w-1").status == "terminated"
    fleet.may_stay = True
