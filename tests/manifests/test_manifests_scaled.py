"""What KEDA makes of our number: real workers of the printed Deployment, as processes instead of
pods, as many as the real server says, and whoever leaves is chosen blindly."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from manifests_made import part, pods
from servers.orchestrator import serving

from sprat.manifests.plan import ManifestPlan
from sprat.server import keys
from sprat.server.options import Options
from sprat.store.open_store import open_store

PLAN = ManifestPlan(image="app", pools=("papers",))
OPTIONS = Options(port=0, reap_seconds=0, linger_seconds=0, shutdown_seconds=2)
JOBS = 18


class Deployment:
    """Processes that run the container of the printed Deployment."""

    def __init__(self, url: str, key: str, place: Path) -> None:
        [deployment] = [one for one in part("keda", PLAN) if one["kind"] == "Deployment"]
        [pod] = list(pods(deployment))
        [self._box] = pod["spec"]["containers"]
        given = {one["name"]: one["value"] for one in self._box["env"]}
        secret = {"SPRAT_URL": url, "SPRAT_API_KEY": key}  # what is in sprat-worker
        self._env = {**os.environ, **given, **secret}
        self._place = place
        self._chance = random.Random(7)
        self.running: list[subprocess.Popen[bytes]] = []
        self.leaving: list[subprocess.Popen[bytes]] = []

    def scale(self, replicas: int) -> None:
        while len(self.running) < replicas:
            self.running.append(self._start())
        while len(self.running) > replicas:
            victim = self.running.pop(self._chance.randrange(len(self.running)))
            victim.send_signal(signal.SIGTERM)
            self.leaving.append(victim)

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", *self._box["command"]]
        return subprocess.Popen(command, env=self._env, cwd=self._place, stderr=subprocess.DEVNULL)


def desired(port: int, key: str) -> int:
    """What KEDA's metrics-api trigger reads, from the printed address."""
    [scaled] = [one for one in part("keda", PLAN) if one["kind"] == "ScaledObject"]
    [trigger] = scaled["spec"]["triggers"]
    about = trigger["metadata"]
    path = about["url"].partition(":8000")[2]
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {key}"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    number = found[about["valueLocation"]] / float(about["targetValue"])
    assert number == int(number)
    return int(number)


@pytest.mark.timeout(300)
def test_a_fleet_that_others_scale_does_its_work_and_goes(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        pool = store.pool("papers")
        job = ["/bin/sh", "-c", "cat >/dev/null; sleep 0.5; echo 1"]
        pool.configure(command=job, directory="/nowhere", max_workers=3, start_on_push=False)
        pool.push_many([{"n": n} for n in range(JOBS)])
        viewer = keys.create(store.backend, ("viewer",))[1]
        worker = keys.create(store.backend, ("worker",))[1]
        with serving(store, OPTIONS) as served:
            made = Deployment(served.url, worker, tmp_path)
            end = time.monotonic() + 240
            most = 0
            try:
                while pool.counts().done < JOBS or made.running:
                    assert time.monotonic() < end, (pool.counts(), len(made.running))
                    if pool.counts().done >= JOBS // 3 and not made.leaving:
                        pool.configure(max_workers=1)  # two of three leave in the middle of a job
                    made.scale(desired(served.port, viewer))
                    most = max(most, len(made.running))
                    time.sleep(0.3)
                codes = [one.wait(60) for one in made.leaving]
            finally:
                for one in [*made.running, *made.leaving]:
                    one.kill()
                    one.wait()
        assert most == 3
        assert codes == [0] * len(codes)
        assert len(codes) >= 3
        assert [item.attempts for item in pool.items()] == [1] * JOBS
        assert pool.counts().done == JOBS
