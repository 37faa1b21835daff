"""Machines as workers: claims, results, failures, the registry, and the reaper; on every store."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rooms import machine, run
from worlds import World

from sprat.core import machine_load
from sprat.core.model import POLICY_NOTES, WorkerRegistration
from sprat.fleet import checker
from sprat.machines.library import OURS, Library, load
from sprat.machines.runtime.host import Given
from sprat.machines.runtime.running import Execution
from sprat.scaling import policies
from sprat.store.store import Store

# A worker of one job, in the shape of the source document.
ONE_JOB = """
name: one_job
settings: {heartbeat_interval: 20}
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
    action: process
    input: {job: "{{ context.job }}"}
    output_to_context: {result: "{{ output }}"}
    on_error: wrong
    transitions: [{to: settle}]
  settle: {action: complete_job, transitions: [{to: done}]}
  wrong: {action: fail_job, transitions: [{to: done}]}
  nothing: {type: final, output: {status: no_work_available}}
  done: {type: final, output: {job_id: "{{ context.job_id }}", result: "{{ context.result }}"}}
"""


def double(given: Any) -> Any:
    return given["job"]["n"] * 2


def fail(_: Any) -> Any:
    raise ValueError("no good")


def throttled(_: Any) -> Any:
    raise ConnectionError("come back later")


def work(store: Store, process: Any = double, **more: Any) -> Any:
    return run(store, ONE_JOB, {"pool_id": "p"}, actions={"process": process}, **more)


def test_a_job_is_claimed_processed_and_completed_by_a_registered_worker(store: Store) -> None:
    item_id = store.pool("p").push({"n": 4})
    assert work(store, execution_id="w-1") == {"job_id": item_id, "result": 8}
    item = store.pool("p").get(item_id)
    assert (item.status, item.result, item.claimed_by) == ("done", 8, "w-1")
    worker = store.workers.get("w-1")
    assert worker is not None
    assert (worker.status, worker.pool_id, worker.lease_seconds) == ("terminated", "p", 40)


def test_no_work_is_said_in_the_words_of_the_document(store: Store) -> None:
    store.pool("p").push({"n": 1}, backlog=True)
    assert work(store) == {"status": "no_work_available"}


def test_a_job_that_fails_is_tried_again_and_poisoned_in_the_end(store: Store) -> None:
    store.pool("p").configure(retry_base_seconds=0.0)
    item_id = store.pool("p").push({"n": 1}, max_retries=2)
    assert work(store, fail) == {"job_id": item_id, "result": None}
    item = store.pool("p").get(item_id)
    assert (item.status, item.attempts) == ("pending", 1)
    work(store, fail)
    item = store.pool("p").get(item_id)
    assert (item.status, item.attempts) == ("poisoned", 2)
    assert item.error is not None
    assert item.error.startswith("ValueError: no good")
    assert "Traceback" in item.error


def test_a_transient_failure_gives_the_attempt_back(store: Store) -> None:
    store.pool("p").configure(retry_base_seconds=0.0)
    item_id = store.pool("p").push({"n": 1}, max_retries=1)
    work(store, throttled)
    item = store.pool("p").get(item_id)
    assert (item.status, item.attempts, item.given_back) == ("pending", 0, 1)


def test_a_machine_that_fails_is_lost_and_its_job_is_free(store: Store) -> None:
    text = ONE_JOB.replace("    on_error: wrong\n", "")
    item_id = store.pool("p").push({"n": 1})
    with pytest.raises(Exception, match="no good"):
        run(store, text, {"pool_id": "p"}, actions={"process": fail}, execution_id="w-1")
    worker = store.workers.get("w-1")
    assert worker is not None
    assert worker.status == "lost"
    assert store.pool("p").get(item_id).status == "pending"


def test_a_late_result_is_dropped(store: Store) -> None:
    """The worker is taken for dead while its job runs: what it settles then changes nothing."""
    item_id = store.pool("p").push({"n": 1})

    def slow(given: Any) -> Any:
        store.workers.update_status("w-1", "lost")
        return double(given)

    text = ONE_JOB.replace("heartbeat_interval: 20", "heartbeat_interval: 20, isolation: none")
    found = run(store, text, {"pool_id": "p"}, actions={"process": slow}, execution_id="w-1")
    assert found == {"job_id": item_id, "result": 2}
    assert store.pool("p").get(item_id).status == "pending"


def test_the_long_running_worker_serves_until_the_pool_is_empty(store: Store) -> None:
    store.pool("p").configure(handler="json:dumps")
    ids = store.pool("p").push_many([{"n": n} for n in range(3)])
    library = Library()
    ours = library.get("worker")
    given = {"pool_id": "p", "idle_seconds": 0.01, "idle_looks": 2}
    found = Execution(store, library, ours, execution_id="w-1").run(given)
    assert found == {"worker_id": "w-1", "jobs": 3, "failed": 0}
    assert [store.pool("p").get(i).result for i in ids] == ['{"n": 0}', '{"n": 1}', '{"n": 2}']


def test_the_long_running_worker_leaves_when_it_is_told_to(store: Store) -> None:
    store.pool("p").configure(handler="json:dumps")
    store.pool("p").push_many([1, 2, 3])

    class Telling:
        def on_action(self, action: str, context: dict[str, Any]) -> Any:
            if action == "complete_job":
                store.workers.update_status("w-1", "terminating")

    library = Library()
    execution = Execution(
        store, library, library.get("worker"), execution_id="w-1", given=Given(hooks=Telling())
    )
    assert execution.run({"pool_id": "p"})["jobs"] == 1
    assert store.pool("p").counts().done == 1
    worker = store.workers.get("w-1")
    assert worker is not None
    assert worker.status == "terminated"


@pytest.mark.parametrize("name", ["reaper", "whole"])
def test_the_reaper_machine_frees_what_stale_workers_hold(world: World, name: str) -> None:
    store = world.open()
    store.pool("p").push(1)
    store.workers.register(WorkerRegistration(worker_id="w-1", pool_id="p", lease_seconds=10))
    store.pool("p").claim("w-1")
    library = Library()
    reaper = load(f"{OURS}/reaper.yml") if name == "reaper" else machine(
        """
        states:
          start: {type: initial, action: reap_stale_workers,
            output_to_context: {o: "{{ output }}"},
            transitions: [{to: end}]}
          end: {type: final, output: {reaped: "{{ context.o.workers }}"}}
        """
    )  # fmt: skip
    given = {"pool_id": "p", "stale_threshold_seconds": 60}
    assert Execution(store, library, reaper).run(given)["reaped"] == []
    world.advance(61)
    assert Execution(store, library, reaper).run(given)["reaped"] == ["w-1"]
    assert store.pool("p").counts().pending == 1
    worker = store.workers.get("w-1")
    assert worker is not None
    assert worker.status == "lost"


def test_a_worker_that_was_heard_of_meanwhile_is_not_reaped(world: World) -> None:
    store = world.open()
    store.workers.register(WorkerRegistration(worker_id="w-1", pool_id="p", lease_seconds=900))
    world.advance(70)

    class Reviving:
        def on_state_enter(self, state: str, context: dict[str, Any]) -> None:
            if state == "reap":
                store.workers.heartbeat("w-1")

    library = Library()
    execution = Execution(store, library, library.get("reaper"), given=Given(hooks=Reviving()))
    found = execution.run({"pool_id": "p", "stale_threshold_seconds": 60})
    assert found == {"reaped": [], "reaped_count": 0}


def test_what_the_policy_would_launch_is_calculated(store: Store) -> None:
    store.pool("p").push_many(range(10))
    text = """
    states:
      start: {type: initial, action: calculate_spawn,
        output_to_context: {o: "{{ output }}"},
        transitions: [{to: end}]}
      end: {type: final, output: "{{ context.o.workers_to_spawn }}"}
    """
    assert run(store, text, {"pool_id": "p", "max_workers": 3}) == 3
    assert run(store, text, {"pool_id": "p"}) == 10


CALCULATED = """
states:
  start: {type: initial, action: calculate_spawn,
    output_to_context: {o: "{{ output }}"},
    transitions: [{to: end}]}
  end: {type: final, output: "{{ context.o }}"}
"""


def test_a_composed_checker_decides_as_a_pass_does_where_something_was_learned(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`slo` has measured that a start takes a minute, which is less than jobs may wait."""
    monkeypatch.setattr(machine_load, "saturation", lambda: None)
    pool = store.pool("p")
    pool.configure(policy_options={"wait_seconds": 600}, max_workers=50)
    pool.push_many(range(30))
    notes = json.dumps({"starts": [60.0] * 5, "starts_at": 1.0})
    store.backend.put(POLICY_NOTES, "p/", notes, None, None)
    learned = checker.check(store, "p", dry_run=True)
    unlearned = policies.decide(pool.observe(), pool.state().settings)
    assert learned.spawned < unlearned.launch
    calculated = run(store, CALCULATED, {"pool_id": "p"})
    assert calculated["workers_to_spawn"] == learned.spawned


def test_a_composed_checker_takes_notes_for_its_next_run(store: Store) -> None:
    store.pool("p").configure(policy_options={"wait_seconds": 5, "cold_start_seconds": 30})
    store.pool("p").push_many(range(3))
    run(store, CALCULATED, {"pool_id": "p"})
    notes = store.backend.document(POLICY_NOTES, "p/")
    assert notes is not None
    assert "arrivals" in json.loads(notes.body)


def test_states_are_signs_of_life(shared: World) -> None:
    """A worker whose states take their time is heard of between them, long before its interval."""
    store = shared.open()
    text = """
    settings: {heartbeat_interval: 600, worker_pool: p}
    states:
      start: {type: initial, wait: 1.2, transitions: [{to: look}]}
      look: {action: look, transitions: [{to: end}]}
      end: {type: final, output: done}
    """
    seen = []

    class Looking:
        def on_state_enter(self, state: str, context: dict[str, Any]) -> None:
            worker = store.workers.get("w-1")
            assert worker is not None
            seen.append(worker.last_heartbeat)

    run(store, text, execution_id="w-1", hooks=Looking(), actions={"look": lambda _: None})
    assert seen[1] - seen[0] > 1
