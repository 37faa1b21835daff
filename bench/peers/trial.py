"""One contender, once: push, push many, drain, wait, start; and what it cost whom."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Figures, percentile, scaled
from bench.peers import watching
from bench.peers.servers import Server

HERE = Path(__file__).parent
PATIENCE = 60.0
LATE = 200  # pushes to an idle worker


@dataclass(frozen=True)
class Contender:
    """A queue, and how to run its worker: `{python}` is its interpreter."""

    name: str
    python: str
    script: str
    one: Sequence[str]  # one worker, one job at a time
    best: Sequence[str]  # the quickest setting on two cores
    settings: str
    jobs: int = 5000  # as many as take a few seconds
    processes: int = 1  # of `best`
    waits: bool = True  # whether it can be pushed to one by one
    is_ours: bool = False


class Trial:
    """The surroundings of one measurement: an empty store, and a file that jobs leave marks in."""

    def __init__(self, contender: Contender, server: Server) -> None:
        self._contender = contender
        self._server = server
        server.fresh()
        self._marks = Path(tempfile.mkstemp(prefix="sprat-marks-")[1])
        self._environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPATH": str(HERE),
            "BENCH_URL": server.url,
            "BENCH_MARKS": str(self._marks),
        }
        self._workers: list[subprocess.Popen[bytes]] = []
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the trial)

    def __enter__(self) -> Trial:
        self.order("setup")
        self.empty()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._log.close()
        self._marks.unlink()

    def order(self, do: str, n: int = 0) -> Figures:
        command = [self._contender.python, "-m", "side", self._contender.script]
        order = json.dumps({"do": do, "n": n})
        done = subprocess.run(
            [*command, order], env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{self._contender.name}, {do}: {done.stderr[-2000:]}")
        figures: Figures = json.loads(done.stdout.strip().splitlines()[-1])
        return figures

    def work(self, command: Sequence[str], processes: int = 1) -> None:
        place = str(Path(self._contender.python).parent)
        names = {"python": self._contender.python, "bin": place, "url": self._server.url}
        argv = [word.format(**names) for word in command]
        for _ in range(processes):
            self._workers.append(
                subprocess.Popen(
                    argv,
                    env={**self._environment, "BENCH_WORKER": "1"},
                    cwd=HERE,
                    stdout=self._log,
                    stderr=self._log,
                    start_new_session=True,
                )
            )

    def stop(self) -> None:
        for worker in self._workers:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        self._workers = []

    def done(self) -> int:
        return self._marks.stat().st_size // 8

    def empty(self) -> None:
        """Forget the marks that were left. No worker runs."""
        os.truncate(self._marks, 0)

    def until(self, n: int) -> None:
        end = time.monotonic() + PATIENCE
        while self.done() < n:
            if time.monotonic() > end:
                self._log.seek(0)
                said = self._log.read()[-2000:].decode(errors="replace")
                raise SystemExit(f"{self._contender.name}: {self.done()} of {n} jobs; {said}")
            time.sleep(0.001)

    def latencies(self) -> list[float]:
        return [value for (value,) in struct.iter_unpack("d", self._marks.read_bytes())]

    def cost(self) -> tuple[float, float]:
        """CPU seconds of the workers and of the server so far."""
        workers = sum(watching.cpu_seconds(worker.pid) for worker in self._workers)
        return workers, self.server_cost()

    def server_cost(self) -> float:
        process = getattr(self._server, "process", None)
        return 0.0 if process is None else watching.cpu_seconds(process.pid)

    def memory(self) -> float:
        return sum(watching.memory_mb(worker.pid) for worker in self._workers)


def pushing(contender: Contender, server: Server) -> Figures:
    with Trial(contender, server) as trial:
        n, jobs = scaled(1000), scaled(contender.jobs)
        before = trial.server_cost()
        one = trial.order("push", n)
        between = trial.server_cost()
        many = trial.order("bulk", jobs)
        after = trial.server_cost()
    return {
        "push_rate": (n - 1) / one["wall"],
        "push_cpu": (one["cpu"] + between - before) / n * 1e6,
        "bulk_rate": (jobs - 1) / many["wall"],
        "bulk_cpu": (many["cpu"] + after - between) / jobs * 1e6,
    }


def draining(
    contender: Contender, server: Server, command: Sequence[str], processes: int
) -> Figures:
    """From a fifth of the jobs to the last twentieth: neither the start nor the end counts."""
    with Trial(contender, server) as trial:
        jobs = scaled(contender.jobs)
        trial.order("bulk", jobs)
        trial.work(command, processes)
        first, last = jobs // 5, jobs - jobs // 20
        trial.until(first)
        began, counted, (workers, server_cpu) = time.monotonic(), trial.done(), trial.cost()
        trial.until(last)
        wall, ran, (workers_after, server_after) = (
            time.monotonic() - began,
            trial.done() - counted,
            trial.cost(),
        )
        trial.until(jobs)
    return {
        "rate": ran / wall,
        "worker_cpu": (workers_after - workers) / ran * 1e6,
        "server_cpu": (server_after - server_cpu) / ran * 1e6,
    }


def waiting(contender: Contender, server: Server) -> Figures:
    """Start to first job, memory at rest, and how soon a pushed job runs."""
    with Trial(contender, server) as trial:
        trial.order("push", 2)
        began = time.monotonic()
        trial.work(contender.one)
        trial.until(1)
        start, (cpu, _) = time.monotonic() - began, trial.cost()
        trial.until(2)
        time.sleep(1.0)  # at rest
        memory, (rest, _) = trial.memory(), trial.cost()
        time.sleep(2.0)
        idle = trial.cost()[0] - rest
        os.truncate(trial._marks, 0)
        n = scaled(LATE)
        trial.order("late", n)
        trial.until(n)
        late = [value * 1000 for value in trial.latencies()]
    return {
        "start_ms": start * 1000,
        "start_cpu": cpu * 1000,
        "memory": memory,
        "idle_cpu": idle / 2 * 1000,
        "p50": percentile(late, 50),
        "p95": percentile(late, 95),
        "p99": percentile(late, 99),
    }
