"""A place with an orchestrator, controllers and their workers, all as real processes."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from patience import PATIENCE, eventually

from sprat.store.open_store import open_store
from sprat.store.store import Store

SPRAT = (sys.executable, "-m", "sprat")
MARKER = "SPRAT_CONTROLLER_UNDER_TEST"
POOL = "papers"
OURS = ("SPRAT_", "ORCHESTRATOR_", "TENANT_", "MACHINE_", "MIN_", "MAX_", "TARGET_", "SCALE_")

JOBS = """\
import os, time

def note(data):
    line = f"{data['n']}\\n".encode()
    log = os.open(data["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, line)
    os.close(log)

def nap(data):
    note(data)
    time.sleep(data.get("seconds", 0.0))
    return data["n"]

def until_told(data):
    note(data)
    while not os.path.exists(data["go"]):
        time.sleep(0.02)
    return data["n"]
"""


class Program:
    """A command of sprat that runs, and what it said so far."""

    def __init__(self, place: Place, name: str, *words: str, **variables: str) -> None:
        self.said = place.path / f"{name}-{uuid.uuid4().hex[:6]}.log"
        with self.said.open("wb") as log:
            self.process = subprocess.Popen(
                [*SPRAT, *words],
                cwd=place.path,
                env=place.environment(**variables),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def text(self) -> str:
        return self.said.read_text()

    def until(self, pattern: str) -> re.Match[str]:
        return eventually(lambda: re.search(pattern, self.text()), lambda: self.text()[-2000:])

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)


class Place:
    """A directory with jobs, a pool in a store of its own, and a server over it."""

    def __init__(self, path: Path, url: str | None = None) -> None:
        self.path = path
        self.mark = uuid.uuid4().hex
        self.url = url or f"sqlite:///{path}/fleet.db"
        self.store: Store = open_store(self.url)
        self.port = free_port()
        self.programs: list[Program] = []
        self.log = path / "jobs.log"
        (path / "jobs.py").write_text(JOBS)
        self.pool = self.store.pool(POOL)
        self.configure()

    def configure(self, pool: str = POOL, **changes: object) -> None:
        quick = {"heartbeat_seconds": 1.0, "idle_seconds": 0.5, "retry_base_seconds": 0.05}
        usual = {"handler": "jobs:nap", "directory": str(self.path), **quick}
        self.store.pool(pool).configure(**{**usual, **changes})

    def environment(self, **variables: str) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        log = {"SPRAT_LOG": str(self.path / "servers.log"), "TMPDIR": str(self.path)}
        always = {"SPRAT_LAUNCH_WHEN_SATURATED": "1"}  # other tests run side by side
        return {**inherited, MARKER: self.mark, **log, **always, **variables}

    def push(self, count: int, *, group: str | None = None, **data: object) -> None:
        first = self.pool.counts().total
        jobs = [{"n": first + n, "log": str(self.log), **data} for n in range(count)]
        self.pool.push_many(jobs, group=group)

    def runs(self) -> Counter[str]:
        """How often each job was started."""
        return Counter(self.log.read_text().split()) if self.log.exists() else Counter()

    def until_done(self, count: int) -> None:
        eventually(lambda: self.pool.counts().done == count, self.pool.counts)

    def workers(self, *status: str) -> list[Any]:
        return self.store.workers.list(status=status or None, pool_id=POOL)

    # -- programs ---------------------------------------------------------------------------

    def serve(self, *words: str) -> Program:
        options = ("--port", str(self.port), "--no-auth", "--linger", "0")
        made = self._start("serve", "serve", *options, *words, SPRAT_URL=self.url)
        made.until(r"serving .* on http")
        return made

    def controller(self, *words: str, **variables: str) -> Program:
        made = self._start("controller", "controller", *words, **variables)
        made.until("controlling")
        return made

    def config(self, text: str = "", **overrides: object) -> None:
        """Write the file: a remote pool of a group, with the pace of a test."""
        given = {"poll_interval_seconds": 0.5, "scale_down_delay_seconds": 0.5, **overrides}
        top = text or f"orchestrator_url: {self.here}\ntenant_id: acme\nmachine_group: gpu\n"
        pace = "lease_seconds: 5\n" if "lease_seconds" not in top else ""
        pace += "launcher: process\n" if "launcher" not in top else ""
        path = self.path / "worker-controller-config.yaml"
        path.write_text(f"{top}{pace}overrides: {json.dumps(given)}\n")

    @property
    def here(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*SPRAT, *words],
            cwd=self.path,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def _start(self, *words: str, **variables: str) -> Program:
        made = Program(self, *words, **variables)
        self.programs.append(made)
        return made

    def processes(self) -> list[int]:
        """Our living processes, by the mark in their environment."""
        mark = f"{MARKER}={self.mark}".encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                try:
                    if mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                        found.append(int(entry))
                except OSError:
                    pass  # it has just ended, or is not ours to read
        return found

    def close(self) -> None:
        """End what is still there, by its id."""
        for program in self.programs:
            if program.process.poll() is None:
                program.signal(signal.SIGCONT)
                program.kill()
        end = time.monotonic() + PATIENCE
        while pids := self.processes():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            assert time.monotonic() < end, pids
            time.sleep(0.02)
        self.store.close()
        for program in self.programs:
            print(program.said.name, program.text()[-3000:])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def ask(
    port: int, path: str, method: str = "GET", body: object = None, key: str | None = None
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text
