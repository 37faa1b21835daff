"""Inline mode, for tests of programs that use sprat: tasks run where they are pushed.

`with sprat.inline():` gives every task pushed inside a store in memory, and runs it before `push`
returns: with its retries, on a clock that jumps instead of waiting. A task that a running one
pushes follows when that one is over, or when its result is asked for.
"""

from __future__ import annotations

import json

from sprat.core import model
from sprat.core.errors import SpratError
from sprat.core.runtime import runtime
from sprat.store.store import Store
from sprat.tasks import default_store
from sprat.tasks.results import answer
from sprat.worker import handlers, processor
from sprat.worker.job import Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.pool import WorkPool
    from sprat.tasks.default_store import Pushes

MOST_JOBS = 10_000  # in one block: a task that pushes itself again and again never ends here
LEASE_SECONDS = 86400.0


class inline(default_store.DefaultStore):  # noqa: N801  (used as a statement: `with sprat.inline():`)
    """Run tasks in this process, at once, with nothing on disk; for all threads of it. A failed
    item whose result was not read raises JobFailed when the block ends."""

    has_workers = False

    def __init__(self) -> None:
        from sprat.store.memory.backend import MemoryBackend

        self._skipped_seconds = 0.0
        super().__init__(
            Store(MemoryBackend(clock=lambda: runtime.time() + self._skipped_seconds), "memory://")
        )
        self._tasks: dict[str, dict[str, Pushes]] = {}  # by pool and name
        self._groups: set[str] = set()
        self._seen: set[str] = set()
        self._jobs = 0
        self._is_running = False

    def __enter__(self) -> Store:
        default_store.everywhere.append(self)
        return self.store

    def __exit__(self, kind: object, *_: object) -> None:
        default_store.everywhere.remove(self)
        if kind is None:
            self._raise_what_nobody_saw()

    # -- as a place -------------------------------------------------------------------------

    def adopt(self, task: Pushes) -> None:
        self._tasks.setdefault(task.pool_name, {})[task.name] = task

    def pushed(self, items: Sequence[model.NewItem]) -> None:
        self._groups.update(item.group for item in items if item.group is not None)
        if not self._is_running:
            self._run_all()

    def look(self, item_id: str) -> model.WorkItem:
        self._run_all()  # there is something left when a job asks for the result of another
        self._seen.add(item_id)
        return self.store.get(item_id)

    # -- running ----------------------------------------------------------------------------

    def _run_all(self) -> None:
        was_running, self._is_running = self._is_running, True
        try:
            while self._run_ready() or self._skip_to_the_next():
                pass
        finally:
            self._is_running = was_running

    def _run_ready(self) -> bool:
        before = self._jobs
        for name, tasks in list(self._tasks.items()):
            pool = self.store.pool(name)
            while item := pool.claim(self._worker()):
                self._run(tasks[item.task] if item.task else next(iter(tasks.values())), pool, item)
        return self._jobs > before

    def _run(self, task: Pushes, pool: WorkPool, item: model.WorkItem) -> None:
        self._jobs += 1
        if self._jobs > MOST_JOBS:
            raise SpratError(f"{MOST_JOBS} jobs ran inline: does {task.pool_name} push itself?")
        # A Ctrl-C, or what a test framework raises to end a test, is not the job's.
        own = (Exception, SystemExit)
        job = Job(pool, item)
        outcome = processor.attempt(lambda job: handlers.call(task, job), job, catch=own)
        if outcome.ok:
            pool.complete(item, None if outcome.result is None else json.loads(outcome.result))
        else:
            pool.fail(
                item,
                outcome.error,
                transient=outcome.transient,
                poison=outcome.poison,
                delay=outcome.delay_seconds or 0.0,
            )

    def _worker(self) -> model.WorkerRecord:
        """One for each set of groups that items asked for so far."""
        worker_id = f"inline-{len(self._groups)}"
        worker = self.store.workers.get(worker_id)
        if worker is not None:
            return worker
        return self.store.workers.register(
            model.WorkerRegistration(
                worker_id=worker_id,
                capabilities=sorted(self._groups),
                lease_seconds=LEASE_SECONDS,
            )
        )

    def _skip_to_the_next(self) -> bool:
        """Move the clock on to where a delayed item is due; False when there is none."""
        pools = [self.store.pool(name) for name in self._tasks]
        due = [pool.observe().next_due_seconds for pool in pools if not pool.state().paused]
        waits = [seconds for seconds in due if seconds is not None]
        self._skipped_seconds += min(waits, default=0.0)
        return bool(waits)

    def _raise_what_nobody_saw(self) -> None:
        for name in self._tasks:
            for item in self.store.pool(name).items(model.POISONED, limit=MOST_JOBS):
                if item.id not in self._seen:
                    answer(item)
