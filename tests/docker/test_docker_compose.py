"""The Dockerfile is built, and the services of compose.yaml run on the image that comes of it.

Two things differ from what is shipped: the base image is made of this machine's packages, because
no registry is asked, and all use the machine's network, because the engine here has no other.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from docker_fleet import DockerFleet, eventually
from servers import postgres

from sprat.config import yaml_tree
from sprat.controller import configuration

ROOT = Path(__file__).parent.parent.parent
JOBS = Path(__file__).parent / "container_jobs.py"
CLI = "/usr/bin/docker"  # Debian's, which builds without a plug-in
BUILT = "localhost/sprat-built:test"
SERVICES = {"store", "orchestrator", "controller"}


def plain(leaf: yaml_tree.Leaf) -> Any:
    if isinstance(leaf.value, dict):
        return {key: plain(inner) for key, inner in leaf.value.items()}
    return [plain(inner) for inner in leaf.value] if isinstance(leaf.value, list) else leaf.value


def run(*command: str | Path, **environment: str) -> str:
    ran = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def built(host: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image of the Dockerfile."""
    place = tmp_path_factory.mktemp("base")
    base = "localhost/base:test"
    run(ROOT / "tools/image", place / "base.tar", base, "--plain", "--package", "python3-pip")
    run(CLI, "--host", host, "load", "--input", place / "base.tar")
    build = (CLI, "--host", host, "build", "--network", "host", "--build-arg", f"BASE={base}")
    run(*build, "--tag", BUILT, ROOT, DOCKER_BUILDKIT="1")
    return BUILT


def test_the_image_is_small_and_runs_as_nobody(host: str, built: str) -> None:
    engine = docker.APIClient(base_url=host, version="auto")
    sizes = {tag: one["Size"] for one in engine.images() for tag in one["RepoTags"] or ()}
    history = json.dumps(engine.history(built))
    about = engine.inspect_image(built)["Config"]
    engine.close()
    assert sizes[built] - sizes["localhost/base:test"] < 100 << 20, "without build tools"
    assert "pip.conf" not in history
    assert about["User"] == "1000:1000"
    ran = ("run", "--rm", "--network", "host", "--read-only", "--cap-drop", "ALL")
    assert run(CLI, "--host", host, *ran, built, "--version").startswith("sprat ")
    looked = "import os, sprat.server, psycopg, hiredis, docker, lightkube; print(os.getuid())"
    shell = (CLI, "--host", host, *ran, "--entrypoint", "python3", built, "-c", looked)
    assert run(*shell) == "1000\n"


def test_the_services_are_those_that_are_documented() -> None:
    environment = {"POSTGRES_PASSWORD": "secret"}
    file = ROOT / "compose.yaml"
    said = run("docker-compose", "--file", file, "config", "--services", **environment)
    assert set(said.split()) == SERVICES
    shown = run("docker-compose", "--file", file, "config", **environment)
    assert "secret" not in re.sub(r"(PGPASSWORD|POSTGRES_PASSWORD): secret", "", shown)


def test_the_controller_starts_containers_and_nothing_else() -> None:
    """Whatever a pool's settings say: its launcher is in the file that it is started with."""
    services = plain(yaml_tree.read((ROOT / "compose.yaml").read_text(), "compose.yaml"))
    controller = services["services"]["controller"]
    assert controller["command"] == ["controller", "/etc/sprat/controller.yaml"]
    assert "./controller.yaml:/etc/sprat/controller.yaml:ro" in controller["volumes"]
    own = configuration.load(str(ROOT / "controller.yaml"), controller["environment"])
    [wanted] = own.scale_sets
    assert wanted.launcher == "docker"
    assert wanted.launcher_options["network"] == "sprat-workers"
    assert wanted.environment == []


# -- the services, running ----------------------------------------------------------------------


class Project:
    """The services of compose.yaml, changed as little as the engine here demands."""

    def __init__(self, host: str, place: Path, image: str) -> None:
        self.host = host
        self.file = place / "compose.json"
        self.port = postgres.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.socket = host.removeprefix("unix://")
        text = (ROOT / "compose.yaml").read_text()
        services = plain(yaml_tree.read(text, "compose.yaml"))["services"]
        del services["store"]
        for service in services.values():
            for key in ("networks", "ports", "depends_on", "build"):
                service.pop(key, None)
            service |= {"image": image, "network_mode": "host"}
        orchestrator, controller = services["orchestrator"], services["controller"]
        orchestrator["command"] = ["serve", "--port", str(self.port), "--linger", "0"]
        orchestrator["environment"] = {"SPRAT_URL": postgres.shared_url()}
        self.controller = place / "controller.yaml"
        self.controller.write_text((ROOT / "controller.yaml").read_text())
        controller["volumes"] = [
            f"{self.socket}:/var/run/docker.sock",
            f"{self.controller}:/etc/sprat/controller.yaml:ro",
        ]
        quick = {"POLL_INTERVAL_SECONDS": "1", "SCALE_DOWN_DELAY_SECONDS": "0"}
        controller["environment"] |= {"ORCHESTRATOR_URL": self.url, **quick}
        self.file.write_text(json.dumps({"version": "2.4", "services": services}))
        self.environment = {
            "DOCKER_HOST": host,
            "DOCKER_GROUP": str(os.stat(self.socket).st_gid),
        }

    def compose(self, *arguments: str) -> str:
        command = ("docker-compose", "--project-name", "sprat-test", "--file", self.file)
        return run(*command, *arguments, **self.environment)

    def launch(self, **options: object) -> None:
        """Change what the controller starts."""
        text = json.dumps({"launcher": "docker", "launcher_options": options})
        self.controller.write_text(text)

    def key(self, *roles: str) -> str:
        """A new key, made in the orchestrator's container."""
        asked = ("keys", "create", *(f"--role={role}" for role in roles))
        said = self.compose("exec", "-T", "orchestrator", "sprat", *asked)
        [key] = [word for word in said.split() if word.startswith("sprat_")]
        return key


@pytest.fixture
def project(host: str, built: str, tmp_path: Path) -> Iterator[Project]:
    postgres.empty(postgres.shared_url())
    project = Project(host, tmp_path, built)
    yield project
    print(project.compose("logs", "--no-color", "--tail", "30"), file=sys.stderr)
    project.compose("down", "--timeout", "5")


def test_two_controllers_scale_containers_from_nothing_and_back(
    project: Project, build: Callable[..., DockerFleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.compose("up", "--detach", "orchestrator")
    eventually(lambda: "http://" in project.compose("logs", "orchestrator"))
    project.environment["SPRAT_API_KEY"] = project.key("controller")
    project.environment["SPRAT_WORKER_API_KEY"] = worker = project.key("worker")
    monkeypatch.setenv("SPRAT_API_KEY", project.key("admin", "pusher"))
    fleet = build(url=project.url)
    volumes = [f"{fleet.log}:/log", f"{JOBS}:/app/container_jobs.py:ro"]
    fleet.set(max_workers=3)
    project.launch(image=BUILT, pull="never", volumes=volumes, directory="/app", network="host")
    project.compose("up", "--detach", "--scale", "controller=2")
    ids = fleet.pool.push_many([{"n": n, "seconds": 0.05} for n in range(200)])
    eventually(lambda: fleet.pool.counts().done > 20, what=fleet.workers)
    killed = next(one for one in fleet.containers() if one["State"] == "running")
    given = fleet.engine.inspect_container(killed["Id"])["Config"]["Env"]
    assert f"SPRAT_API_KEY={worker}" in given
    fleet.engine.kill(killed["Id"])
    eventually(lambda: fleet.pool.counts().done == 200, what=fleet.pool.counts)
    eventually(lambda: not fleet.containers(), what=fleet.containers)
    assert {fleet.pool.get(one).attempts for one in ids} <= {1, 2}
    ended = [count for line, count in fleet.said().items() if line.startswith("ended")]
    assert len(ended) == 200
    assert sum(ended) <= 201, "only the job that was killed may have run again"
    assert len(fleet.workers()) >= 3
    assert not fleet.workers("starting", "active", "terminating")
