"""A worker machine whose hooks claim and settle by id through the store's own objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sprat
from sprat.store.store import Store

JOB_WORKER = """\
spec: flatmachine
spec_version: "0.8.3"

data:
  name: job_worker

  settings:
    heartbeat_interval: 30

  context:
    pool_id: "{{ input.pool_id }}"

  states:
    start:
      type: initial
      transitions:
        - to: claim_job

    claim_job:
      action: claim_job  # Atomic claim via WorkBackend
      output_to_context:
        job: "{{ output.job }}"
        job_id: "{{ output.job_id }}"
      transitions:
        - condition: "context.job == null"
          to: no_work
        - to: process_job

    process_job:
      machine: actual_job_processor  # Your paper_analyzer, etc.
      input:
        job: "{{ context.job }}"
      output_to_context:
        result: "{{ output }}"
      on_error: job_failed
      transitions:
        - to: complete_job

    complete_job:
      action: complete_job
      transitions:
        - to: done

    job_failed:
      action: fail_job  # Increments attempts, may poison job
      transitions:
        - to: done

    no_work:
      type: final
      output:
        status: "no_work_available"

    done:
      type: final
      output:
        job_id: "{{ context.job_id }}"
        result: "{{ context.result }}"
"""
PROCESSOR = """\
data:
  name: actual_job_processor
  states:
    start: {type: initial, transitions: [{to: done}]}
    done: {type: final, output: {echo: "{{ input.job.message.strip() }}"}}
"""


class MachineHooks:
    """What a user of the class below puts underneath: the objects of a store."""

    def __init__(self, store: Store) -> None:
        self.work_backend: Any = store
        self.registration_backend: Any = store.workers


class DistributedWorkerHooks(MachineHooks):
    def on_action(self, action: str, context: dict) -> dict:  # type: ignore[type-arg]
        if action == "get_pool_state":
            pool = self.work_backend.pool(context["pool_id"])
            registry = self.registration_backend
            return {
                "queue_depth": pool.size(),
                "active_workers": len(registry.list(status="active")),
            }

        if action == "claim_job":
            pool = self.work_backend.pool(context["pool_id"])
            item = pool.claim(context["worker_id"])
            return {"job": item.data if item else None, "job_id": item.id if item else None}

        if action == "complete_job":
            pool = self.work_backend.pool(context["pool_id"])
            pool.complete(context["job_id"], context.get("result"))
            return context

        if action == "fail_job":
            pool = self.work_backend.pool(context["pool_id"])
            pool.fail(context["job_id"], context.get("error"))
            return context

        return context


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "job_worker.yml").write_text(JOB_WORKER)
    (tmp_path / "actual_job_processor.yml").write_text(PROCESSOR)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def work(store: Store) -> Any:
    hooks = DistributedWorkerHooks(store)
    return sprat.run_machine(store, "job_worker.yml", {"pool_id": "papers"}, hooks=hooks)


def test_hooks_that_claim_and_complete_by_id_finish_the_job(store: Store, place: Path) -> None:
    item_id = store.pool("papers").push({"message": "hello"})
    assert work(store) == {"job_id": item_id, "result": {"echo": "hello"}}
    item = store.get(item_id)
    assert (item.status, item.result, item.attempts) == ("done", {"echo": "hello"}, 1)
    assert work(store) == {"status": "no_work_available"}


def test_hooks_that_fail_by_id_use_up_the_attempts(store: Store, place: Path) -> None:
    item_id = store.pool("papers").push({"message": 7}, max_retries=2)
    for _ in range(2):
        work(store)
    item = store.get(item_id)
    assert (item.status, item.attempts) == ("poisoned", 2)
