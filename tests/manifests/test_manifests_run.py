"""Orchestrator and controller, run with the printed commands and asked what the probes ask."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

import pytest
import yaml
from manifests_made import Object, part, pods
from servers.orchestrator import serving

from sprat.manifests import controller, orchestrator
from sprat.manifests.plan import CONTROLLER_PORT, PORT, ManifestPlan
from sprat.server import keys
from sprat.server.options import Options
from sprat.store.open_store import open_store

PLAN = ManifestPlan(image="app", pools=("papers",))
LISTENS = re.compile(r"on http://127\.0\.0\.1:(\d+)")
PATIENCE = 100.0  # seconds: the machine may be busy


def printed(name: str) -> Object:
    [deployment] = [one for one in part(name, PLAN) if one["kind"] == "Deployment"]
    [pod] = list(pods(deployment))
    [box] = pod["spec"]["containers"]
    found: Object = box
    return found


def answer(port: int, path: str) -> int:
    """The status, 0 while nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


class Running:
    """A printed command, on a free port of this machine."""

    def __init__(self, box: Object, swaps: dict[str, str], place: Path, **env: str) -> None:
        words = [swaps.get(word, word) for word in box["command"]]
        assert words != box["command"]
        self._log = place / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=place,
                env={**os.environ, **env},
                stdout=log,
                stderr=log,
            )
        self.port = 0

    def __enter__(self) -> Self:
        end = time.monotonic() + PATIENCE
        while not (found := LISTENS.search(self._log.read_text())):
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < end, self._log.read_text()
            time.sleep(0.1)
        self.port = int(found[1])
        return self

    def wait_for(self, probe: Object, status: int) -> None:
        end = time.monotonic() + PATIENCE
        while (found := answer(self.port, probe["httpGet"]["path"])) != status:
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < end, f"{probe}: {found}\n{self._log.read_text()}"
            time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


@pytest.mark.timeout(240)
def test_the_orchestrator_answers_its_probes_until_it_has_left(tmp_path: Path) -> None:
    box, linger = printed("orchestrator"), str(orchestrator.LINGER_SECONDS)
    swaps = {"0.0.0.0": "127.0.0.1", str(PORT): "0", linger: "100"}  # the machine may be busy
    with Running(box, swaps, tmp_path, SPRAT_URL=f"sqlite:///{tmp_path}/fleet.db") as server:
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            server.wait_for(box[name], 200)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for(box["readinessProbe"], 503)
        assert answer(server.port, box["livenessProbe"]["httpGet"]["path"]) == 200
        server.process.send_signal(signal.SIGTERM)  # skips the rest of the linger
        assert server.process.wait(PATIENCE) == 0


@pytest.mark.timeout(240)
def test_the_controller_answers_its_probes_with_the_key_and_the_file_it_is_given(
    tmp_path: Path,
) -> None:
    box, file = printed("controller"), tmp_path / controller.FILE
    options = Options(port=0, reap_seconds=0, linger_seconds=0, shutdown_seconds=2)
    swaps = {
        f"{controller.DIRECTORY}/{controller.FILE}": str(file),
        f"0.0.0.0:{CONTROLLER_PORT}": "127.0.0.1:0",
    }
    with open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        store.pool("papers").configure(command=["true"])
        key = keys.create(store.backend, ("controller",))[1]
        with serving(store, options) as served:
            told = {**controller.configuration(PLAN), "orchestrator_url": served.url}
            file.write_text(yaml.safe_dump(told))
            env = {"SPRAT_API_KEY": key, "KUBECONFIG": str(tmp_path / "none")}
            with Running(box, swaps, tmp_path, **env) as leader:
                leader.wait_for(box["livenessProbe"], 200)
                leader.wait_for(box["readinessProbe"], 200)
                leader.process.send_signal(signal.SIGTERM)
                assert leader.process.wait(PATIENCE) == 0
