"""Which job a piece of code belongs to, when several run in one process."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import sprat
from sprat.core.errors import SpratError
from sprat.store.open_store import open_store
from sprat.worker.job import Job, run

Jobs = list[Job]


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    with open_store("memory://") as store:
        pool = store.pool("numbers")
        pool.push_many(range(4))
        worker = store.workers.register(sprat.WorkerRegistration(worker_id="w"))
        yield [Job(pool, item) for item in pool.claim_many(worker, 4)]


def in_a_thread(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(call).result()


def test_each_thread_has_its_own(jobs: Jobs) -> None:
    meeting = threading.Barrier(len(jobs))

    def work(job: Job) -> bool:
        meeting.wait(10)  # all of them run now
        return sprat.current_job() is job

    with ThreadPoolExecutor(len(jobs)) as threads:
        assert all(threads.map(lambda job: run(work, job), jobs))


def test_each_asyncio_task_has_its_own(jobs: Jobs) -> None:
    async def work(job: Job) -> bool:
        await asyncio.sleep(0)
        here = sprat.current_job() is job
        return here and await asyncio.to_thread(sprat.current_job) is job

    async def all_of_them() -> list[bool]:
        loop = asyncio.get_running_loop()

        def begin(job: Job) -> asyncio.Task[bool]:
            return run(lambda job: loop.create_task(work(job)), job)

        return await asyncio.gather(*map(begin, jobs))

    assert asyncio.run(all_of_them()) == [True] * 4


def test_a_thread_that_the_only_job_started_finds_it(jobs: Jobs) -> None:
    assert run(lambda _: in_a_thread(sprat.current_job), jobs[0]) is jobs[0]


def test_a_job_inside_of_another_is_the_current_one_until_it_ends(jobs: Jobs) -> None:
    outer, inner, *_ = jobs

    def work(_: Job) -> list[Job]:
        found = run(lambda _: [sprat.current_job(), in_a_thread(sprat.current_job)], inner)
        return [*found, sprat.current_job()]

    assert run(work, outer) == [inner, inner, outer]


def test_without_a_job_and_in_doubt_there_is_none(jobs: Jobs) -> None:
    with pytest.raises(SpratError, match="no job is running here"):
        sprat.current_job()

    def elsewhere(_: Job) -> Any:
        return in_a_thread(sprat.current_job)

    def two(_: Job) -> Any:
        """The second one does not run inside of the first: in a slot of its own."""
        return contextvars.Context().run(run, elsewhere, jobs[1])

    with pytest.raises(SpratError, match="no job is running here"):
        run(two, jobs[0])
    with pytest.raises(SpratError):
        sprat.current_job()
