"""sprat as it is meant to run on Kubernetes: an orchestrator, a pool whose workers are pods, and
controllers that may do what the shipped role lets them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from clusters import IMAGE, Room, until
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Secret

from sprat.core import model
from sprat.core.model import WorkItem
from sprat.store.open_store import open_store
from sprat.store.store import Store

POOL = "papers"
ACCOUNT = "sprat-controller"  # as in the shipped manifests
MAX_WORKERS = 4
SPRAT = (sys.executable, "-P", "-m", "sprat")
ENDS = 30.0  # seconds until a command that was told to end has to be gone
WORK_ENDS = 180.0  # until all work is done, on a machine with other things to do


class System:
    """One pool, its orchestrator and its controllers. The store is looked into directly."""

    def __init__(
        self, place: Path, room: Room, *, host: str = "127.0.0.1", **settings: Any
    ) -> None:
        self.place = place
        self.room = room
        self.store: Store = open_store(f"sqlite:///{place / 'sprat.db'}")
        self.pool = self.store.pool(POOL)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.configure(**settings)
        self.url = self._serve(host)
        self.write_secret("sprat", SPRAT_URL=self.url, SPRAT_API_KEY=self.key("worker"))

    def configure(self, **settings: Any) -> None:
        options = {
            "image": IMAGE,
            "image_pull_policy": "Never",
            "namespace": self.room.name,
            "directory": "/app",
            "secret": "sprat",
            "host_network": True,
            "ttl_seconds": 1.0,
        }
        usual = {
            "handler": "pod_jobs:work",
            "launcher": "kubernetes",
            "launcher_options": options,
            "max_workers": MAX_WORKERS,
            "heartbeat_seconds": 2.0,
            "idle_seconds": 1.0,
        }
        self.pool.configure(**{**usual, **settings})

    def push(self, count: int, **payload: float) -> list[str]:
        """Through the orchestrator, as a program somewhere else would. Their ids."""
        jobs = self.place / "jobs.jsonl"
        lines = [json.dumps({"number": number, **payload}) for number in range(count)]
        jobs.write_text("\n".join(lines))
        there = {"SPRAT_URL": self.url, "SPRAT_API_KEY": self.key("pusher")}
        there["SPRAT_ALLOW_HTTP"] = "1"  # a pod reaches the node by its address
        pushed = self.run("push", POOL, "--file", str(jobs), "--json", **there)
        return list(json.loads(pushed)["ids"])

    def start_controller(self, name: str = "controller", **environment: str) -> None:
        """One of them, with the rights of the shipped role and a key of its role only."""
        told = {
            "ORCHESTRATOR_URL": self.url,
            "SPRAT_ALLOW_HTTP": "1",
            "SPRAT_API_KEY": self.key("controller"),
            "KUBECONFIG": str(self.kubeconfig()),
            "MAX_REPLICAS": str(MAX_WORKERS),
            "POLL_INTERVAL_SECONDS": "1",
            "SCALE_DOWN_DELAY_SECONDS": "1",
        }
        file = self.place / "controller.yaml"
        settings = self.pool.state().settings
        where = {"launcher": settings.launcher, "launcher_options": settings.launcher_options}
        file.write_text(json.dumps({"pool": POOL, "lease_seconds": 5, **where}))
        self.start(name, "controller", str(file), **{**told, **environment})

    def kubeconfig(self) -> Path:
        """To be the service account of the shipped manifests, with their role."""
        cluster = self.room.cluster
        if ACCOUNT not in {one.metadata.name for one in self.room.accounts()}:
            for one in self.manifests("rbac"):
                cluster.create(one)
        return cluster.kubeconfig(self.place, namespace=self.room.name, account=ACCOUNT)

    def manifests(self, *words: str) -> list[dict[str, Any]]:
        """What `sprat manifests` prints for the namespace of this test."""
        printed = self.run("manifests", *words, "--namespace", self.room.name, "--json")
        return list(json.loads(printed)["items"])

    def write_secret(self, name: str, **values: str) -> None:
        about = ObjectMeta(name=name, namespace=self.room.name)
        self.room.client.create(Secret(metadata=about, stringData=values))

    def key(self, *roles: str) -> str:
        """A new API key of the orchestrator."""
        flags = [word for role in roles for word in ("--role", role)]
        return str(json.loads(self.run("keys", "create", *flags, "--json"))["key"])

    def run(self, *words: str, **environment: str) -> str:
        """What a command of sprat says, if not told otherwise about the store itself."""
        done = subprocess.run(
            [*SPRAT, *words],
            env=os.environ | {"SPRAT_URL": self.store.url} | environment,
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, name: str, *words: str, **environment: str) -> None:
        """Let a command of sprat run beside us."""
        with (self.place / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [*SPRAT, *words],
                env=os.environ | environment,
                cwd=self.place,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def told(self, name: str) -> str:
        """What a command that runs beside us has said so far."""
        process = self._processes[name]
        text = (self.place / f"{name}.log").read_text()
        assert process.poll() is None, f"{name} ended with {process.returncode}:\n{text}"
        return text

    def story(self) -> str:
        """What all of them had to say, except for every single request."""
        logs = sorted(self.place.glob("*.log"))
        lines = [f"{log.stem}: {line}" for log in logs for line in log.read_text().splitlines()]
        return "\n".join(line for line in lines if "sprat.access" not in line)

    # -- what is there -------------------------------------------------------------------------

    def items(self) -> list[WorkItem]:
        return self.pool.items(limit=10_000)

    def live(self) -> int:
        """How many workers there are, those included that are only reserved."""
        return len(self.store.workers.list(status=model.LIVE, pool_id=POOL))

    def until_done(self, count: int) -> None:
        until(lambda: self.pool.counts().done >= count, f"{count} done jobs", within=WORK_ENDS)

    def until_empty(self) -> None:
        """Until there is no worker and no pod any more."""
        until(lambda: not self.live() and not self.room.pods(), "an empty fleet", within=WORK_ENDS)

    def check_each_done_once(self, ids: list[str]) -> None:
        """Nothing lost, nothing doubled: each item that was pushed has its own result."""
        items = self.items()
        assert Counter(item.id for item in items) == Counter(ids)
        assert {item.status for item in items} == {model.DONE}
        assert [item.result["number"] for item in items] == [i.data["number"] for i in items]

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait(ENDS)

    def close(self) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            process.wait(ENDS)
        self.store.close()

    def _serve(self, host: str) -> str:
        self.start("serve", "serve", "--host", host, "--port", "0", "--url", self.store.url)
        pattern = re.compile(rf"http://{re.escape(host)}:\d+")
        return str(until(lambda: pattern.search(self.told("serve")), "the server").group())
