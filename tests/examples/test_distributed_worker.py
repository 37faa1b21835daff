"""The manual verification of the source document, with the scripts of the example."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from example import Example, eventually

import sprat

NAME = "distributed_worker"
POOL = "echo"


@pytest.fixture
def store(example: Example) -> Iterator[sprat.Store]:
    (example.place / "data").mkdir()
    with sprat.open_store(f"sqlite:///{example.place}/data/worker.sqlite") as store:
        yield store


def statuses(store: sprat.Store, *worker_ids: str) -> set[str]:
    return {store.workers.get(worker_id).status for worker_id in worker_ids}


def test_the_nine_steps_with_the_scripts(example: Example, store: sprat.Store) -> None:
    pool = store.pool(POOL)

    # 1. Seed 10 jobs.
    example.run("seed_jobs.py", "--count", "10", "--delay", "0.5")
    assert pool.counts().ready == 10
    assert not store.workers.list()

    # 2. Run the checker.
    checked = example.data("run_checker.py", "--max-workers", "3")
    assert (checked["spawned"], checked["queue_depth"], checked["active_workers"]) == (3, 10, 0)
    spawned = checked["spawned_ids"]

    # 3. Three workers appear, take a job each, do it, and exit.
    eventually(lambda: statuses(store, *spawned) == {"terminated"})
    taken = {i.claimed_by: i.result for i in pool.items("done")}
    assert all("echo" in taken[worker_id] for worker_id in spawned)

    # 4. Run the checker again: never more than three, until nothing is left.
    while pool.size():
        example.data("run_checker.py", "--max-workers", "3")
        assert len(store.workers.list(status=("starting", "active"))) <= 3
    eventually(lambda: pool.counts().done == 10, pool.counts)

    # 5. Each is done once, by a worker of its own.
    done = pool.items("done")
    assert [item.result for item in done] == [{"echo": f"job {n}"} for n in range(1, 11)]
    assert {item.attempts for item in done} == {1}
    assert len({item.claimed_by for item in done}) == 10
    example.until_gone()

    # 6. Kill a worker in the middle of its job.
    example.run("seed_jobs.py", "--count", "1", "--delay", "600")
    worker = example.start("run_worker.py", "--worker-id", "victim")
    eventually(lambda: pool.counts().claimed)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    (job,) = pool.items("claimed")
    assert job.claimed_by == "victim"

    # 7. Run the reaper, once the worker is stale.
    assert example.data("run_reaper.py") == {"reaped": [], "reaped_count": 0}
    found = eventually(lambda: example.data("run_reaper.py", "--threshold", "2")["reaped"])
    assert found == ["victim"]

    # 8. The job is back in the pool, the worker is lost.
    assert pool.get(job.id).status == "pending"
    assert statuses(store, "victim") == {"lost"}
    pool.cancel(job.id)

    # 9. A job that fails max_retries times is poisoned.
    example.run("seed_jobs.py", "--count", "1", "--delay", "0", "--fail", "--max-retries", "2")
    example.run("run_checker.py", "--max-workers", "1")
    eventually(lambda: pool.counts().poisoned == 1, pool.counts)
    (bad,) = pool.items("poisoned")
    assert (bad.attempts, bad.error.partition("\n")[0]) == (2, "ValueError: told to fail at job 1")


def test_a_worker_does_one_job_of_its_pool_and_says_when_there_is_none(
    example: Example, store: sprat.Store
) -> None:
    example.run("seed_jobs.py", "--pool", "other", "--count", "2", "--delay", "0")
    nothing = {"status": "no_work_available"}
    assert example.data("run_worker.py") == nothing
    said = [example.data("run_worker.py", "--pool", "other") for _ in range(3)]
    assert [one.get("result", {}).get("echo") for one in said] == ["job 1", "job 2", None]
    assert said[2] == nothing
    assert {worker.status for worker in store.workers.list()} == {"terminated"}


def test_the_checker_launches_what_is_missing(example: Example, store: sprat.Store) -> None:
    pool = store.pool(POOL)
    example.run("seed_jobs.py", "--count", "2", "--delay", "600")
    assert example.data("run_checker.py", "--max-workers", "0")["spawned"] == 0
    assert example.data("run_checker.py", "--max-workers", "1")["spawned"] == 1
    eventually(lambda: pool.counts().claimed == 1)
    assert example.data("run_checker.py", "--max-workers", "1")["spawned"] == 0
    assert example.data("run_checker.py")["spawned"] == 1
    eventually(lambda: pool.counts().claimed == 2)
    checked = {"spawned": 0, "spawned_ids": [], "queue_depth": 0, "active_workers": 2}
    assert example.data("run_checker.py") == checked
    pool.cancel(*(item.id for item in pool.items()))
    example.until_gone()
    assert example.data("run_checker.py") == {**checked, "active_workers": 0}


def test_its_machines_run_by_command_in_the_same_store(example: Example) -> None:
    example.run("seed_jobs.py", "--count", "1", "--delay", "0")
    ran = example.data("sprat", "run", "config/job_worker.yml", "--input", '{"pool_id": "echo"}')
    assert ran["result"] == {"echo": "job 1"}
    assert example.data("sprat", "status", "--json")["pools"][0]["done"] == 1
