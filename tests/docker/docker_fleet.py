"""A fleet under test: a pool of a store, whose workers are containers of the test engine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import docker
import patience

from sprat.core import model
from sprat.fleet import checker
from sprat.store.open_store import open_store

IMAGE = "localhost/sprat:test"
POOL = "papers"
PATIENCE = 180.0  # seconds: an engine takes longer than a process
QUICK = {"idle_seconds": 0.3, "heartbeat_seconds": 10.0, "retry_base_seconds": 0.05}

eventually = partial(patience.eventually, within=PATIENCE)


class DockerFleet:
    def __init__(self, host: str, url: str, log: Path, pool: str = POOL) -> None:
        self.host = host
        self.url = url
        self.name = pool
        self.engine = docker.APIClient(base_url=host, version="auto", timeout=60)
        self.log = log
        log.mkdir(exist_ok=True)
        log.chmod(0o777)
        self.store = open_store(url)
        self.pool = self.store.pool(pool)
        self.options: dict[str, Any] = {
            "image": IMAGE,
            "host": host,
            "pull": "never",
            "network": "host",
            "directory": "/app",
            "volumes": [f"{log}:/log"],
        }
        self.set(handler="container_jobs:run", policy="queue-depth", **QUICK)

    def set(self, *, options: dict[str, Any] | None = None, **settings: Any) -> None:
        """Change settings; an option that is None goes back to its default."""
        self.options |= options or {}
        given = {name: value for name, value in self.options.items() if value is not None}
        self.pool.configure(launcher="docker", launcher_options=given, **settings)

    def close(self) -> None:
        for one in self.containers():
            self.engine.remove_container(one["Id"], force=True)
        self.engine.close()
        self.store.close()

    # -- doing --------------------------------------------------------------------------------

    def push(self, n: int = 0, **data: Any) -> str:
        return self.pool.push({"n": n, **data})

    def check(self, **options: Any) -> checker.Checked:
        return checker.check(self.store, self.name, **options)

    def sprat(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The command, as a person gives it."""
        return subprocess.run(
            [sys.executable, "-m", "sprat", *arguments],
            env={**os.environ, "SPRAT_URL": self.url, **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def explained(self) -> str:
        """What `sprat explain` says, without its line breaks."""
        return " ".join(self.sprat("explain", self.name).stdout.split())

    def until_done(self, n: int, within: float = PATIENCE) -> None:
        """Pass after pass, as a controller does, until so many jobs are done."""

        def passed() -> bool:
            self.check()
            return self.pool.counts().done >= n

        eventually(passed, what=lambda: (self.pool.counts(), self.workers()), within=within)

    def until_empty(self) -> None:
        """Until the passes have cleared every container away."""

        def passed() -> bool:
            self.check()
            return not self.containers()

        eventually(passed, what=self.containers)

    # -- seeing -------------------------------------------------------------------------------

    def containers(self) -> list[dict[str, Any]]:
        """Every container of this pool, in whatever state, of any store."""
        found: list[dict[str, Any]] = self.engine.containers(
            all=True, filters={"label": f"sprat.pool={self.name}"}
        )
        return found

    def container(self) -> dict[str, Any]:
        """The only one."""
        [found] = self.containers()
        return found

    def workers(self, *status: str) -> list[model.WorkerRecord]:
        return self.store.workers.list(status=status or None, pool_id=self.name)

    def said(self) -> Counter[str]:
        """What the jobs wrote, each line with how often."""
        path = self.log / "jobs"
        return Counter(path.read_text().splitlines() if path.exists() else [])

    def until_said(self, line: str) -> None:
        eventually(lambda: self.said()[line], what=self.workers)
