"""What a worker costs that lives for one job, in CPU time, against a bare Python and others.

`python -m bench.worker_start`: register, claim, run a no-op, complete, leave; forked from a fork
server, started cold, and what RQ and flatmachines do for one job. All that is waited for counts:
the worker, its children, and the fork server with its store proxy, less what an empty one costs.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import sprat
from bench import environment
from bench.measure import HERE, Figures, Target, rounds, scaled, table, targets

FLEET = HERE / "fleet"
POOL = "bench"
ROUNDS = 5
JOBS = scaled(200)
RQ_JOBS = scaled(50)
COLD_RUNS = 5
SMALLEST_TARGET_MS = 4.0

BARE = "`python -c pass`"
FORKED = "sprat, forked, isolation none"
FORKED_CHILD = "sprat, forked, isolation process (the default)"
COLD = "sprat, cold: `python -m sprat work POOL --max-jobs 1 --isolation none`"
RQ = "RQ, its worker forks for the job (Redis itself not counted)"
FLATMACHINES = "flatmachines, its worker, cold"


# As users have it: modules are compiled once, and found compiled from then on.
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cpu_ms(command: list[str], env: Mapping[str, str] = CLEAN) -> float:
    """User and system time of a command and all that it waited for."""
    silence = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    pid = os.posix_spawn(command[0], command, env, file_actions=silence)
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{' '.join(command)} failed")
    return (usage.ru_utime + usage.ru_stime) * 1e3


def each(n: int, run: Callable[[], float]) -> Figures:
    return {"cpu_ms": sum(run() for _ in range(n)) / n}


def bare() -> Figures:
    return each(COLD_RUNS, lambda: cpu_ms([sys.executable, "-c", "pass"]))


# -- ours ---------------------------------------------------------------------------------------


@contextmanager
def pool(n: int, **settings: object) -> Iterator[tuple[sprat.WorkPool, dict[str, str]]]:
    """A pool with n no-op jobs, and the environment that leads to it."""
    with (
        tempfile.TemporaryDirectory(prefix="sprat-bench-") as place,
        sprat.open_store(f"sqlite:///{place}/fleet.db") as store,
    ):
        made = store.pool(POOL)
        made.configure(handler="bench_jobs:noop", directory=str(FLEET), **settings)
        made.push_many({"n": number} for number in range(n))
        source = str(Path(sprat.__file__).parent.parent)
        env = {**CLEAN, "SPRAT_URL": store.url, "PYTHONPATH": source}
        yield made, env
        assert made.counts().done == n, f"{made.counts()} of {n} jobs"


def fork_server(n: int, isolation: str) -> float:
    with pool(n, max_jobs=1, isolation=isolation) as (_, env):
        return cpu_ms(
            [sys.executable, "-P", "-m", "sprat.launchers.process.fork_server", POOL], env
        )


def forked(isolation: str) -> Figures:
    return {"cpu_ms": (fork_server(JOBS + 1, isolation) - fork_server(1, isolation)) / JOBS}


def cold() -> Figures:
    command = [sys.executable, "-m", "sprat", "work", POOL]
    with pool(COLD_RUNS) as (_, env):
        options = ["--max-jobs", "1", "--isolation", "none"]
        return each(COLD_RUNS, lambda: cpu_ms([*command, *options], env))


# -- the others ---------------------------------------------------------------------------------


@contextmanager
def redis() -> Iterator[str]:
    """A server of our own on a free port; the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="sprat-bench-") as place:
        options = ["--port", port, "--bind", "127.0.0.1", "--dir", place, "--appendonly", "yes"]
        command = ["redis-server", *options, "--save", ""]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _until_open(int(port))
            yield port
        finally:
            server.terminate()
            server.wait()


def _until_open(port: int) -> None:
    for _ in range(200):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("redis-server does not answer")


def rq(python: str) -> Figures:
    def run(n: int) -> float:
        with redis() as port:
            script = str(FLEET / "rq_worker.py")
            subprocess.run([python, script, "push", port, str(n)], check=True)
            return cpu_ms([python, script, "work", port])

    return {"cpu_ms": (run(RQ_JOBS + 1) - run(1)) / RQ_JOBS}


def flatmachines(python: str) -> Figures:
    script = str(FLEET / "flatmachines_worker.py")
    with tempfile.TemporaryDirectory(prefix="sprat-bench-") as place:
        path = f"{place}/queue.db"
        push = [python, script, "push", path, str(COLD_RUNS)]
        subprocess.run(push, check=True, stderr=subprocess.DEVNULL)
        ids = iter(range(COLD_RUNS))
        return each(
            COLD_RUNS, lambda: cpu_ms([python, script, "work", path, f"worker-{next(ids)}"])
        )


def section() -> tuple[str, list[Target]]:
    contenders: dict[str, Callable[[], Figures]] = {
        BARE: bare,
        FORKED: partial(forked, "none"),
        FORKED_CHILD: partial(forked, "process"),
        COLD: cold,
        FLATMACHINES: partial(flatmachines, environment.python(environment.FLATMACHINES)),
    }
    missing = ""
    if shutil.which("redis-server"):
        contenders[RQ] = partial(rq, environment.python(environment.RQ))
    else:
        missing = "\n\nRQ was not measured: there is no redis-server here."
    found = rounds(ROUNDS, contenders)
    ms = {name: figures["cpu_ms"] for name, figures in found.items()}
    rows = [[name, ms[name], ms[name] / ms[BARE], ms[name] / ms[FORKED]] for name in contenders]
    head = ["a worker for one no-op job", "CPU ms", f"of {BARE}", "of ours, forked"]
    half = max(0.5, SMALLEST_TARGET_MS / ms[BARE])
    kept = [
        Target(f"a forked worker to {BARE}", ms[FORKED] / ms[BARE], round(half, 2)),
        Target(f"a cold worker to {BARE}", ms[COLD] / ms[BARE], 3.0),
    ]
    versions = ", ".join(
        one.replace("==", " ") for one in (*environment.RQ, *environment.FLATMACHINES)
    )
    text = f"{table(head, rows)}{missing}\n\nOthers: {versions}.\n\n"
    return text + targets("ours against bare Python", kept), kept


if __name__ == "__main__":
    print(section()[0])
