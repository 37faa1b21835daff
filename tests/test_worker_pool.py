"""The in-process pool, behaviours 4.6 and 4.11: threads, processes, scaling, draining, regions."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE, eventually

from sprat.core.errors import InvalidInput
from sprat.local.regional_pool import RegionalPool
from sprat.local.worker_pool import Job, PoolClosed, WorkerPool, WorkerStats
from sprat.local.worker_process import WorkerDied


class Gate:
    """A task that says it began and waits to be let through."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.open = threading.Event()
        self.threads: set[int] = set()

    def __call__(self) -> None:
        self.threads.add(threading.get_ident())
        self.begun.release()
        assert self.open.wait(PATIENCE)


def job(task: Callable[..., Any], *args: Any, **about: Any) -> Job:
    return Job(job_id=about.pop("job_id", "j"), task=task, args=args, **about)


def numbers(seen: WorkerStats) -> tuple[int, int, int, int]:
    return seen.total_workers, seen.active_workers, seen.idle_workers, seen.draining_workers


# -- threads ------------------------------------------------------------------------------------


def test_4_6_jobs_run_with_their_arguments() -> None:
    with WorkerPool(initial_workers=2, region="us-east") as pool:
        future = pool.submit_job(
            Job(job_id="1", task=divmod, args=(17, 5), region="us-east", submitted_at=0.0)
        )
        named = pool.submit_job(Job(job_id="2", task=dict, kwargs={"a": 1}))
        assert future.result(PATIENCE) == (3, 2)
        assert named.result(PATIENCE) == {"a": 1}
        assert pool.get_stats().region == "us-east"


def test_4_6_no_job_is_dropped_while_the_pool_is_scaled_up_and_down() -> None:
    ran: list[int] = []
    with WorkerPool(3) as pool:
        for n in range(400):
            pool.submit_job(job(ran.append, n))
            if n % 10 == 0:
                pool.scale_to((n // 10) % 6)
        pool.scale_to(4)
        assert pool.shutdown()
    assert sorted(ran) == list(range(400))
    seen = pool.get_stats()
    assert (seen.jobs_completed, seen.jobs_failed, seen.queue_depth) == (400, 0, 0)


def test_4_6_four_to_one_under_a_backlog_ends_within_one_job() -> None:
    """Each worker that is too many leaves when the job it has is over, whatever waits."""
    gates = [Gate() for _ in range(4)]
    after = Gate()
    pool = WorkerPool(4)
    for gate in gates:
        pool.submit_job(job(gate))
    for gate in gates:
        assert gate.begun.acquire(timeout=PATIENCE)
    for _ in range(20):
        pool.submit_job(job(after))
    pool.scale_to(1)
    assert numbers(pool.get_stats()) == (1, 1, 0, 3)
    assert pool.get_stats().in_flight_jobs == 4
    for gate in gates:
        gate.open.set()
    assert after.begun.acquire(timeout=PATIENCE)
    eventually(lambda: numbers(pool.get_stats()) == (1, 1, 0, 0))
    assert pool.get_stats().queue_depth == 19
    after.open.set()
    assert pool.shutdown(PATIENCE)
    assert len(after.threads) == 1
    assert pool.get_stats().jobs_completed == 24


def test_idle_workers_leave_before_busy_ones() -> None:
    gate = Gate()
    pool = WorkerPool(4)
    pool.submit_job(job(gate))
    assert gate.begun.acquire(timeout=PATIENCE)
    pool.scale_to(1)
    assert numbers(pool.get_stats()) == (1, 1, 0, 0)
    pool.submit_job(job(int))
    gate.open.set()
    assert pool.shutdown(PATIENCE)
    assert pool.get_stats().jobs_completed == 2


def test_scaling_to_zero_keeps_the_jobs() -> None:
    pool = WorkerPool(0)
    futures = [pool.submit_job(job(abs, -n)) for n in range(3)]
    assert pool.get_stats().queue_depth == 3
    pool.scale_to(1)
    assert [future.result(PATIENCE) for future in futures] == [0, 1, 2]
    pool.scale_to(0)
    pool.submit_job(job(int))
    assert pool.shutdown(PATIENCE)  # somebody comes to drain what waits
    assert pool.get_stats().jobs_completed == 4


def test_4_6_shutdown_drains_what_waits_and_takes_no_more() -> None:
    pool = WorkerPool(1)
    futures = [pool.submit_job(job(abs, -n)) for n in range(50)]
    assert pool.shutdown(timeout_s=PATIENCE) is True
    assert [future.result(0) for future in futures] == list(range(50))
    with pytest.raises(PoolClosed, match="job late comes too late"):
        pool.submit_job(job(int, job_id="late"))
    with pytest.raises(PoolClosed):
        pool.scale_to(3)
    assert pool.shutdown() is True


def test_4_6_shutdown_says_when_time_ran_out_and_can_be_asked_again() -> None:
    gate = Gate()
    pool = WorkerPool(1)
    pool.submit_job(job(gate))
    waits = pool.submit_job(job(abs, -7))
    assert gate.begun.acquire(timeout=PATIENCE)
    assert pool.shutdown(timeout_s=0.01) is False
    gate.open.set()
    assert pool.shutdown(PATIENCE) is True
    assert waits.result(0) == 7


def test_failures_are_counted_and_the_worker_goes_on() -> None:
    def leave() -> None:
        raise SystemExit(3)

    with WorkerPool(1) as pool:
        bad = pool.submit_job(job(int, "seven"))
        worse = pool.submit_job(job(leave))
        good = pool.submit_job(job(int, "7"))
        assert good.result(PATIENCE) == 7
        with pytest.raises(ValueError, match="seven"):
            bad.result(0)
        with pytest.raises(SystemExit):
            worse.result(0)
        seen = pool.get_stats()
        assert (seen.jobs_completed, seen.jobs_failed, seen.total_workers) == (1, 2, 1)


def test_async_tasks_are_run_to_their_end() -> None:
    async def double(n: int) -> int:
        return 2 * n

    with WorkerPool(1) as pool:
        assert pool.submit_job(job(double, 21)).result(PATIENCE) == 42


def test_a_cancelled_job_does_not_run() -> None:
    ran: list[int] = []
    pool = WorkerPool(0)
    first, second = (pool.submit_job(job(ran.append, n)) for n in (1, 2))
    assert first.cancel()
    assert pool.shutdown(PATIENCE)
    assert ran == [2]
    assert second.done()


def test_4_11_latency_is_measured_from_submitting_to_the_end() -> None:
    with WorkerPool(2) as pool:
        assert pool.get_stats().p95_latency_ms == 0.0
        pool.submit_job(job(time.sleep, 0.1)).result(PATIENCE)
        seen = pool.get_stats()
        assert 80 < seen.p95_latency_ms < 2000
        assert seen.p95_wait_ms < seen.p95_latency_ms


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"initial_workers": -1}, "initial_workers must be a whole number"),
        ({"kind": "fibre"}, "kind must be thread or process"),
        ({"shutdown_timeout_s": -1}, "shutdown_timeout_s must be seconds"),
    ],
)
def test_nonsense_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        WorkerPool(**arguments)


def test_the_environment_makes_a_pool() -> None:
    given = {
        "MIN_WORKERS": "2",
        "CURRENT_REGION": "us-east",
        "WORKER_SHUTDOWN_TIMEOUT_S": "0.01",
    }
    pool = WorkerPool.from_env(given)
    assert (pool.get_stats().total_workers, pool.region) == (2, "us-east")
    gate = Gate()
    pool.submit_job(job(gate))
    assert gate.begun.acquire(timeout=PATIENCE)
    assert pool.shutdown() is False
    gate.open.set()
    assert pool.shutdown(PATIENCE)
    with pytest.raises(InvalidInput, match="WORKER_SHUTDOWN_TIMEOUT_S must be a number"):
        WorkerPool.from_env({"WORKER_SHUTDOWN_TIMEOUT_S": "soon"})


# -- regions ------------------------------------------------------------------------------------


def test_4_6_a_job_of_another_region_is_refused() -> None:
    with WorkerPool(1, "us-east") as pool:
        with pytest.raises(InvalidInput, match="is for region eu-west, and this pool is in region"):
            pool.submit_job(job(int, region="eu-west"))
        assert pool.submit_job(job(int)).result(PATIENCE) == 0
    with WorkerPool(1) as anywhere, pytest.raises(InvalidInput, match="this pool is of no region"):
        anywhere.submit_job(job(int, region="eu-west"))


def test_4_11_jobs_are_routed_to_the_pool_of_their_region() -> None:
    us, eu = WorkerPool(0, "us"), WorkerPool(0, "eu")
    both = RegionalPool([us, eu])
    both.submit_job(job(int, region="eu"))
    both.submit_job(job(int, region="eu"))
    assert [us.get_stats().queue_depth, eu.get_stats().queue_depth] == [0, 2]
    both.scale_to({"us": 0, "eu": 1})
    both.submit_job(job(int))  # to where there are workers
    eventually(lambda: both.get_stats()["eu"].jobs_completed == 3)
    with pytest.raises(InvalidInput, match="there is no region 'mars': one of us, eu"):
        both.submit_job(job(int, region="mars"))
    with pytest.raises(InvalidInput, match="there is no region 'mars'"):
        both.scale_to({"eu": 9, "mars": 1})
    assert both.get_stats()["eu"].total_workers == 1
    assert both.shutdown(PATIENCE)


def test_each_pool_needs_a_region_of_its_own() -> None:
    with WorkerPool(0, "us") as us, WorkerPool(0) as nowhere:
        for pools in ([us, us], [nowhere], []):
            with pytest.raises(InvalidInput):
                RegionalPool(pools)


# -- processes ----------------------------------------------------------------------------------


def who_am_i() -> int:
    return os.getpid()


def die_once(marker: str) -> str:
    """Takes its process with it the first time."""
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def die(log: str) -> None:
    with Path(log).open("a") as file:
        file.write("x")
    os._exit(3)


class Odd(Exception):
    """Can be pickled, but not read again."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def be_odd() -> None:
    raise Odd(1, 2)


def hand_over() -> object:
    return threading.Lock()


def test_4_6_processes_run_beside_each_other_and_drain(tmp_path: Path) -> None:
    with WorkerPool(2, kind="process") as pool:
        pids = {pool.submit_job(job(who_am_i)).result(PATIENCE) for _ in range(4)}
        assert os.getpid() not in pids
        with pytest.raises(ValueError, match="seven"):
            pool.submit_job(job(int, "seven")).result(PATIENCE)
        with pytest.raises(Exception, match="Odd: 1 and 2"):
            pool.submit_job(job(be_odd)).result(PATIENCE)
        with pytest.raises(TypeError, match="pickle"):
            pool.submit_job(job(hand_over)).result(PATIENCE)
        with pytest.raises(InvalidInput, match="cannot be sent to a process"):
            pool.submit_job(job(lambda: None))
        # A killed process's job runs again, in a new process.
        assert pool.submit_job(job(die_once, str(tmp_path / "died"))).result(PATIENCE) == "survived"
        # One that takes every process with it fails.
        log = tmp_path / "log"
        with pytest.raises(WorkerDied, match="exited with code 3 in the middle of the job"):
            pool.submit_job(job(die, str(log))).result(PATIENCE)
        assert log.read_text() == "xxx"
        pool.scale_to(1)
        assert pool.submit_job(job(who_am_i)).result(PATIENCE)
        seen = pool.get_stats()
        assert (seen.jobs_completed, seen.jobs_failed, seen.total_workers) == (6, 4, 1)
        assert pool.shutdown(PATIENCE)
    for pid in pids:
        eventually(lambda pid=pid: not is_alive(pid))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
