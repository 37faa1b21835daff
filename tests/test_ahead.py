"""A worker that takes tiny jobs ahead: few writes, and nothing is held for long."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from worlds import World

from sprat.core import model
from sprat.store.pool import WorkPool
from sprat.store.store import Store
from sprat.worker.job import Job
from sprat.worker.worker import CLAIM_SECONDS, Worker, WorkerReport

Run = Callable[..., WorkerReport]


class Counted(Store):
    """A store that counts the steps taken in it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.backend, store.url)
        self.exchanges = 0
        original = store.backend.exchange

        def exchange(*args: Any, **kwargs: Any) -> model.Exchange:
            self.exchanges += 1
            return original(*args, **kwargs)

        self.backend.exchange = exchange  # type: ignore[method-assign]


@pytest.fixture
def run(store: Store) -> Run:
    """Runs a worker of the pool here until there is nothing left to do."""

    def run(
        processor: Callable[[Job], Any], *, used: Store | None = None, **settings: Any
    ) -> WorkerReport:
        settings = {"isolation": "none", "idle_seconds": 0.05, "claim_ahead": 100, **settings}
        worker = Worker(
            used or store,
            "papers",
            processor,
            settings=model.PoolSettings(**settings),
            worker_id="w1",
        )
        return worker.run()

    return run


def test_tiny_jobs_share_their_writes(store: Store, pool: WorkPool, run: Run) -> None:
    pool.push_many([{"n": n} for n in range(500)])
    counted = Counted(store)
    report = run(lambda job: job.item.data["n"], used=counted)
    assert report.jobs == 500
    assert pool.counts().done == 500
    assert counted.exchanges < 60, "one at a time would be 500"
    items = pool.items(limit=500)
    assert [item.result for item in items] == list(range(500))
    assert {item.attempts for item in items} == {1}


def test_one_at_a_time_unless_asked_for(store: Store, pool: WorkPool, run: Run) -> None:
    pool.push_many([{}] * 50)
    counted = Counted(store)
    run(lambda job: None, used=counted, claim_ahead=1)
    assert counted.exchanges >= 50


def test_a_job_taken_ahead_sees_its_attempt(store: Store, pool: WorkPool, run: Run) -> None:
    pool.push_many([{}] * 40)
    seen: list[int] = []
    run(lambda job: seen.append(job.attempt))
    assert seen == [1] * 40


def test_a_long_job_lets_the_others_go(store: Store, pool: WorkPool, run: Run) -> None:
    """Whoever is behind it in the batch is handed back, and what is done is settled: without
    waiting for a heartbeat."""
    pool.push_many([{"n": n} for n in range(200)])
    store.workers.register(model.WorkerRegistration(worker_id="other", pool_id="papers"))
    done: list[int] = []
    found: list[model.Counts] = []

    def job(job: Job) -> None:
        n = job.item.data["n"]
        if n == 150 and not found:
            end = time.monotonic() + 60
            while pool.counts().claimed > 1 and time.monotonic() < end:
                time.sleep(0.01)
            found.append(pool.counts())
        done.append(n)

    run(job, heartbeat_seconds=300.0)
    assert (found[0].claimed, found[0].done) == (1, 150)
    assert sorted(done) == list(range(200))
    assert {item.attempts for item in pool.items(limit=500)} == {1}


def test_failures_among_tiny_jobs_are_told_apart(store: Store, pool: WorkPool, run: Run) -> None:
    pool.push_many([{"n": n} for n in range(100)], max_retries=1)

    def job(job: Job) -> None:
        if job.item.data["n"] % 10 == 0:
            raise ValueError("no tens")

    report = run(job)
    assert (report.jobs, report.failed) == (100, 10)
    assert (pool.counts().done, pool.counts().poisoned) == (90, 10)


def test_no_more_than_max_jobs_are_taken(store: Store, pool: WorkPool, run: Run) -> None:
    pool.push_many([{}] * 100)
    report = run(lambda job: None, max_jobs=37)
    assert report.jobs == 37
    counts = pool.counts()
    assert (counts.done, counts.pending, counts.claimed) == (37, 63, 0)
    assert {item.given_back for item in pool.items(limit=500)} == {0}


def test_a_worker_told_to_leave_hands_back_what_it_has_not_begun(
    store: Store, pool: WorkPool
) -> None:
    pool.push_many([{"n": n} for n in range(300)])
    worker = Worker(
        store,
        "papers",
        lambda job: worker._on_signal() if job.item.data["n"] == 100 else None,
        settings=model.PoolSettings(isolation="none", claim_ahead=100),
        worker_id="w1",
    )
    report = worker.run()
    assert (report.jobs, report.left) == (101, "told to leave")
    counts = pool.counts()
    assert (counts.done, counts.pending, counts.claimed) == (101, 199, 0)
    left = [item for item in pool.items(limit=500) if item.status == model.PENDING]
    assert {item.attempts for item in left} == {0}


def test_a_job_out_of_time_is_stopped_and_the_next_one_is_not(shared: World) -> None:
    """In a process of its own: stopping a job kills whatever the process has started."""
    pool = shared.open().pool("papers")
    pool.push_many([{"n": n} for n in range(100)], max_retries=1)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            Worker(
                shared.open(),
                "papers",
                lambda job: time.sleep(60 if job.item.data["n"] == 70 else 0),
                settings=model.PoolSettings(
                    isolation="none", idle_seconds=0.05, claim_ahead=100, timeout_seconds=0.3
                ),
                worker_id="w1",
            ).run()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert (pool.counts().done, pool.counts().poisoned) == (99, 1)
    poisoned = pool.items(status=model.POISONED)
    assert [item.data["n"] for item in poisoned] == [70]
    assert "0.3 seconds" in str(poisoned[0].error)


def test_run_times_are_those_of_each_job(store: Store, pool: WorkPool, run: Run) -> None:
    pool.push_many([{}] * 200)
    run(lambda job: None)
    stats = pool.stats(3600)
    assert stats.finished == 200
    assert stats.run_mean < 0.01


def test_a_job_pushed_after_an_edit_is_not_run_with_old_code(
    store: Store, pool: WorkPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker had looked at its files before the edit, and claims after the push."""

    class Edited:
        is_edited = False

        def has_changed(self) -> bool:
            return self.is_edited

        def __call__(self, job: Job) -> Any:
            raise AssertionError("old code")

    processor = Edited()
    exchange = store.backend.exchange

    def late(*args: Any, **kwargs: Any) -> model.Exchange:
        if not processor.is_edited:
            processor.is_edited = True
            pool.push_many([{}] * 3)
            until = time.monotonic() + CLAIM_SECONDS
            while time.monotonic() < until:
                pass
        return exchange(*args, **kwargs)

    monkeypatch.setattr(store.backend, "exchange", late)
    settings = model.PoolSettings(isolation="none", claim_ahead=100)
    worker = Worker(store, "papers", processor, settings=settings, worker_id="w1", version=0)
    assert worker.run().jobs == 0
    assert [(item.status, item.attempts) for item in pool.items()] == [("pending", 0)] * 3
