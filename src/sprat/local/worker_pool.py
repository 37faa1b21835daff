"""A pool of workers inside this program: threads, or processes for work that needs the CPU.

It is not durable: what waits in it is gone when the program ends. Work that must survive that goes
into a store (`sprat.open_store`), whose workers live elsewhere.

Every worker is a thread that takes one job after the other. In a pool of processes the thread hands
the job to a process of its own (see worker_process.py) and waits. Scaling down never interrupts: a
worker that is one too many leaves before it takes its next job.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from threading import Condition, Thread, current_thread
from typing import Any, Self

from sprat.config import environment
from sprat.core import payload
from sprat.core.coroutines import outcome
from sprat.core.errors import InvalidInput, SpratError
from sprat.core.record import Record
from sprat.local.sliding_percentile import SlidingPercentile
from sprat.local.worker_process import WorkerDied, WorkerProcess, packed

KINDS = ("thread", "process")
MAX_WORKERS = 10_000
SHUTDOWN_SECONDS = 30.0
MAX_CRASHES = 3  # a job that took its process so often has failed


class PoolClosed(SpratError):
    """The pool was shut down: it takes no more jobs."""


class Job(Record):
    """A call to make. `retries` counts the processes that it took down so far."""

    job_id: str
    task: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] | None = None
    region: str | None = None  # None: anywhere
    submitted_at: object = None  # yours to use; the pool measures by its own clock
    retries: int = 0


class WorkerStats(Record):
    """The pool at one moment. `total_workers` are those that stay: active and idle. Those that
    finish their last job and leave are `draining_workers`; their jobs are in flight as well."""

    total_workers: int
    active_workers: int
    idle_workers: int
    draining_workers: int
    queue_depth: int
    in_flight_jobs: int
    jobs_completed: int
    jobs_failed: int
    p95_latency_ms: float  # from submitted to ended, over the last minute; 0: nothing ended
    p95_wait_ms: float
    region: str | None


class _Ticket:
    """A job on its way through the pool."""

    def __init__(self, job: Job, call: bytes | None) -> None:
        self.job = job
        self.call = call  # for a process, what is sent to it
        self.future: Future[Any] = Future()
        self.submitted_at = time.monotonic()


class WorkerPool:
    """`with WorkerPool(4) as pool: pool.submit_job(Job(...))`; leaving the block drains it."""

    def __init__(
        self,
        initial_workers: int = 1,
        region: str | None = None,
        *,
        kind: str = "thread",
        shutdown_timeout_s: float = SHUTDOWN_SECONDS,
    ) -> None:
        payload.whole(initial_workers, "initial_workers", 0, MAX_WORKERS)
        if kind not in KINDS:
            raise InvalidInput(f"kind must be {' or '.join(KINDS)}, not {kind!r}")
        self.region = region
        self._kind = kind
        self._shutdown_timeout_s = payload.seconds(shutdown_timeout_s, "shutdown_timeout_s")
        self._changed = Condition()
        self._waiting: deque[_Ticket] = deque()
        self._threads: set[Thread] = set()  # all that live
        self._staying = 0  # those of them that have not decided to leave
        self._wanted = 0
        self._busy = 0
        self._completed = 0
        self._failed = 0
        self._closed = False
        self._latency = SlidingPercentile()
        self._wait = SlidingPercentile()
        self.scale_to(initial_workers)

    @classmethod
    def from_env(
        cls, variables: Mapping[str, str] | None = None, *, kind: str = "thread"
    ) -> WorkerPool:
        """From MIN_WORKERS, CURRENT_REGION and WORKER_SHUTDOWN_TIMEOUT_S."""
        values = environment.given(variables)
        return cls(
            environment.whole(values, "MIN_WORKERS", 1, MAX_WORKERS),
            values.get("CURRENT_REGION") or None,
            kind=kind,
            shutdown_timeout_s=environment.real(
                values, "WORKER_SHUTDOWN_TIMEOUT_S", SHUTDOWN_SECONDS, 86400.0
            ),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    # -- for the caller ---------------------------------------------------------------------

    def submit_job(self, job: Job) -> Future[Any]:
        """Queue a job; its result, or what it raised, comes with the future. A job of another
        region is refused."""
        if job.region is not None and job.region != self.region:
            here = f"in region {self.region}" if self.region else "of no region"
            raise InvalidInput(
                f"job {job.job_id} is for region {job.region}, and this pool is {here}: "
                f"submit it to the pool of its region"
            )
        call = packed(job.task, job.args, job.kwargs or {}) if self._kind == "process" else None
        ticket = _Ticket(job, call)
        with self._changed:
            if self._closed:
                raise PoolClosed(f"job {job.job_id} comes too late: the pool was shut down")
            self._waiting.append(ticket)
            self._changed.notify()
        return ticket.future

    def scale_to(self, workers: int) -> None:
        """Have this many workers. New ones start at once; of those that are too many the idle leave
        at once, and the busy when their job has ended. With 0 the jobs wait."""
        payload.whole(workers, "workers", 0, MAX_WORKERS)
        with self._changed:
            if self._closed:
                raise PoolClosed("the pool was shut down: it cannot be scaled")
            self._wanted = workers
            self._fill()
            self._changed.notify_all()

    def get_stats(self) -> WorkerStats:
        with self._changed:
            now = time.monotonic()
            surplus = max(0, self._staying - self._target())
            draining = max(0, surplus - (self._staying - self._busy))  # the idle leave first
            total = self._staying - surplus
            return WorkerStats(
                total_workers=total,
                active_workers=self._busy - draining,
                idle_workers=total - (self._busy - draining),
                draining_workers=draining,
                queue_depth=len(self._waiting),
                in_flight_jobs=self._busy,
                jobs_completed=self._completed,
                jobs_failed=self._failed,
                p95_latency_ms=1000 * self._latency.percentile(0.95, now),
                p95_wait_ms=1000 * self._wait.percentile(0.95, now),
                region=self.region,
            )

    def shutdown(self, timeout_s: float | None = None) -> bool:
        """Take no more jobs, finish those that are here, and end; whether all ended in time. After
        False the rest goes on as long as the program does, and may be waited for again."""
        limit = self._shutdown_timeout_s if timeout_s is None else timeout_s
        end = time.monotonic() + payload.seconds(limit, "timeout_s")
        with self._changed:
            self._closed = True
            self._fill()
            self._changed.notify_all()
            while self._threads:
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            return True

    # -- the workers ------------------------------------------------------------------------

    def _target(self) -> int:
        """How many are to stay; when the pool is closed one has to drain what waits."""
        return max(1, self._wanted) if self._closed and self._waiting else self._wanted

    def _fill(self) -> None:
        while self._staying < self._target():
            name = f"sprat-worker-{self.region or 'local'}"
            thread = Thread(target=self._work, name=name, daemon=True)
            thread.start()
            self._threads.add(thread)
            self._staying += 1

    def _work(self) -> None:
        process = WorkerProcess() if self._kind == "process" else None
        while (ticket := self._take()) is not None:
            self._run(ticket, process)
        if process is not None:
            process.close()
        with self._changed:
            self._threads.discard(current_thread())
            self._changed.notify_all()

    def _take(self) -> _Ticket | None:
        """The next job, as soon as there is one; None: leave."""
        with self._changed:
            while True:
                if self._staying > self._target() or (self._closed and not self._waiting):
                    self._staying -= 1
                    return None
                if not self._waiting:
                    self._changed.wait()
                    continue
                ticket = self._waiting.popleft()
                if ticket.future.running() or ticket.future.set_running_or_notify_cancel():
                    now = time.monotonic()
                    self._busy += 1
                    self._wait.add(now - ticket.submitted_at, now)
                    return ticket

    def _run(self, ticket: _Ticket, process: WorkerProcess | None) -> None:
        job = ticket.job
        try:
            if process is None or ticket.call is None:
                result = outcome(job.task(*job.args, **(job.kwargs or {})))
            else:
                result = process.run(ticket.call)
        except WorkerDied as died:
            if job.retries + 1 < MAX_CRASHES:
                self._requeue(ticket)
            else:
                self._note(ticket, failed=True)
                ticket.future.set_exception(died)
        except BaseException as error:  # noqa: BLE001  (whatever a job raises is its result)
            self._note(ticket, failed=True)
            ticket.future.set_exception(error)
        else:
            self._note(ticket, failed=False)
            ticket.future.set_result(result)

    def _requeue(self, ticket: _Ticket) -> None:
        """Back to the front: it has waited once."""
        ticket.job = ticket.job.replace(retries=ticket.job.retries + 1)
        with self._changed:
            self._busy -= 1
            self._waiting.appendleft(ticket)
            self._changed.notify_all()

    def _note(self, ticket: _Ticket, *, failed: bool) -> None:
        with self._changed:
            now = time.monotonic()
            self._busy -= 1
            self._failed += failed
            self._completed += not failed
            self._latency.add(now - ticket.submitted_at, now)
