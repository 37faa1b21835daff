"""`sprat demo`: push jobs, watch workers appear, lose one of them to kill -9, and see the proof.

Everything shown is real: a SQLite store in a temporary directory, and workers that the push itself
brought up. The demo only looks at the store, and kills one worker.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time

from sprat.cli.main import DONE, FAILED, UsageError
from sprat.core import model
from sprat.launchers.process import wake_pipe
from sprat.store.open_store import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.pool import WorkPool
    from sprat.store.store import Store

POOL = "squares"
JOBS = 20
BAD = 7  # this one fails every time
WORKERS = 4
KILL_AFTER = 5  # jobs done before a worker is killed
LOOK_SECONDS = 0.02
JOB_SECONDS = 0.15
PATIENCE_SECONDS = 60.0

HELP = """\
usage: sprat demo

Pushes 20 jobs into a fresh SQLite store, watches workers appear and share them,
kills one with SIGKILL in the middle of a job, and shows that nothing was lost or
doubled. It takes a few seconds and leaves nothing behind."""

NEXT = """\
Try next:
  sprat init            a sprat.yml and an example job, here
  sprat push POOL JSON  a job of your own; workers appear by themselves
  sprat watch POOL      follow it to the end
  sprat explain POOL    why there are as many workers as there are"""

RED, GREEN, YELLOW, DIM = "31", "32", "33", "2"


def main(arguments: Sequence[str]) -> int:
    """Show the demo; 1 when its own proof fails."""
    if list(arguments) in (["--help"], ["-h"]):
        print(HELP)
        return DONE
    if arguments:
        raise UsageError(f"`sprat demo` takes no arguments, not {arguments[0]!r}")
    place = tempfile.mkdtemp(prefix="sprat-demo-")
    store = open_store(f"sqlite:///{place}/fleet.db")
    demo = Demo(store, f"{place}/starts")
    try:
        return demo.show()
    finally:
        demo.clean_up()
        store.close()
        wake_pipe.remove(store.url, POOL)
        shutil.rmtree(place, ignore_errors=True)


class Demo:
    """One showing: what was seen in the store so far, and what is new."""

    def __init__(self, store: Store, log: str) -> None:
        self.store = store
        self.pool: WorkPool = store.pool(POOL)
        self.log = log
        self.began = time.monotonic()
        self.names: dict[str, str] = {}  # of the workers, in order of appearance
        self.statuses: dict[str, str] = {}
        self.items: dict[str, model.WorkItem] = {}
        self.killed: str | None = None  # the item whose worker was killed

    def show(self) -> int:
        print(f"{JOBS} jobs, up to {WORKERS} workers, one SQLite file, no server, no daemon.\n")
        self._push()
        self._watch()
        self._explain()
        return self._prove()

    def clean_up(self) -> None:
        """End what still runs, if the demo was interrupted: nobody new, and nobody left."""
        self.pool.pause()
        for worker in self._live():
            if worker.pid is not None:
                _kill(worker.pid)

    # -- what happens -----------------------------------------------------------------------

    def _push(self) -> None:
        self.pool.configure(
            handler="sprat.cli.demo_job:work",
            max_workers=WORKERS,
            idle_seconds=0.3,
            retry_base_seconds=0.2,
            heartbeat_seconds=1.0,
            start_on_push=True,
        )
        jobs = [
            {"number": n, "bad": n == BAD, "seconds": JOB_SECONDS, "log": self.log}
            for n in range(1, JOBS + 1)
        ]
        began = time.monotonic()
        self.pool.push_many(jobs)
        took = (time.monotonic() - began) * 1000
        self._line("push", f"{JOBS} jobs are on disk after {took:.0f} ms; nobody is at work yet")

    def _watch(self) -> None:
        while True:
            self._look()
            counts = self.pool.counts()
            if self.killed is None and counts.done >= KILL_AFTER:
                self._kill_one()
            if not counts.pending and not counts.claimed and not self._live():
                return
            if time.monotonic() - self.began > PATIENCE_SECONDS:
                raise TimeoutError(f"the demo was not over after {PATIENCE_SECONDS:.0f} s")
            time.sleep(LOOK_SECONDS)

    def _look(self) -> None:
        """Show what changed since the last look."""
        for worker in self.store.workers.list():
            if worker.status != self.statuses.get(worker.worker_id):
                self.statuses[worker.worker_id] = worker.status
                self._on_worker(worker)
        for item in self.pool.items(limit=JOBS):
            before = self.items.get(item.id)
            self.items[item.id] = item
            if before is None or (before.status, before.epoch) != (item.status, item.epoch):
                self._on_item(item)

    def _on_worker(self, worker: model.WorkerRecord) -> None:
        name = self.names.setdefault(worker.worker_id, f"w{len(self.names) + 1}")
        if worker.status == model.ACTIVE:
            self._line(name, f"appeared, pid {worker.pid}")
        elif worker.status == model.LOST:
            self._line(name, f"lost ({worker.reason}): its job is free again", RED)
        elif worker.status == model.TERMINATED:
            self._line(name, f"left ({worker.reason})", DIM)

    def _on_item(self, item: model.WorkItem) -> None:
        name = self.names.get(item.claimed_by or "", "")
        job = f"job {item.data['number']}"
        if item.status == model.CLAIMED and item.attempts > 1:
            self._line(name, f"{job} starts again, attempt {item.attempts}", YELLOW)
        elif item.status == model.DONE:
            self._line(name, f"{job} done")
        elif item.status == model.POISONED:
            self._line(name, f"{job} failed for the third time: kept with its error", RED)

    def _kill_one(self) -> None:
        """Kill a worker whose job has really started, and is not about to end."""
        starts = self._starts()
        seen = self.pool.observe()
        for worker in seen.workers:
            if worker.current_task_id is None or worker.pid is None:
                continue
            item = self.pool.get(worker.current_task_id)
            number = item.data["number"]
            is_young = seen.now - (item.claimed_at or 0.0) < JOB_SECONDS / 2
            if number != BAD and is_young and str(number) in starts:
                self.killed = worker.current_task_id
                name = self.names.get(worker.worker_id, worker.worker_id)
                self._line("kill -9", f"{name}, in the middle of job {number}", RED)
                _kill(worker.pid)
                return

    def _starts(self) -> list[str]:
        """The numbers of the jobs that noted their start, once for each time."""
        with open(self.log, encoding="ascii") as log:
            return log.read().split()

    def _live(self) -> list[model.WorkerRecord]:
        return self.store.workers.list(status=model.LIVE)

    # -- what is left -----------------------------------------------------------------------

    def _explain(self) -> None:
        print("\nWhy there were as many workers as there were:")
        for decision in reversed(self.pool.decisions()):
            print(f"  {decision.reason}")

    def _prove(self) -> int:
        print("\nRead back from the store:")
        counts = self.pool.counts()
        items = self.pool.items(limit=JOBS)
        done = [item for item in items if item.status == model.DONE]
        starts = len(self._starts())
        killed = self.pool.get(self.killed) if self.killed else None
        bad = next(item for item in items if item.data["number"] == BAD)
        claims = [
            (
                f"{JOBS} pushed = {counts.done} done + {counts.poisoned} failed, none left over",
                (counts.total, counts.done, counts.poisoned) == (JOBS, JOBS - 1, 1),
            ),
            (
                "every result is there, and right",
                all(item.result == {"square": item.data["number"] ** 2} for item in done),
            ),
            (
                f"{starts} starts for {JOBS} jobs: the bad one three times, the killed one twice",
                starts == JOBS + 3,
            ),
            (
                "the job whose worker was killed was done at its second attempt",
                killed is not None and (killed.status, killed.attempts) == (model.DONE, 2),
            ),
            (
                f"job {BAD} was tried 3 times, then kept with its error",
                (bad.status, bad.attempts) == (model.POISONED, 3),
            ),
            ("all workers have left: nothing of ours is running", not self._live()),
        ]
        for what, is_so in claims:
            print(f"  {_coloured('yes' if is_so else 'NO ', GREEN if is_so else RED)}  {what}")
        print(f"\n{NEXT}")
        return DONE if all(is_so for _, is_so in claims) else FAILED

    def _line(self, who: str, what: str, colour: str = "") -> None:
        moment = time.monotonic() - self.began
        text = f"{who:<8} {what}"
        print(f"  {moment:4.2f} s  {_coloured(text, colour)}", flush=True)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _coloured(text: str, colour: str) -> str:
    plain = not colour or not sys.stdout.isatty() or os.environ.get("NO_COLOR")
    return text if plain else f"\x1b[{colour}m{text}\x1b[0m"
