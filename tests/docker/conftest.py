"""Fixtures: the engine that tools/docker-engine started, an image with our jobs, and fleets.

`make test-docker` starts it. Elsewhere there is nothing to collect here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest
from docker_fleet import IMAGE, DockerFleet
from servers import postgres

ROOT = Path(__file__).parent.parent.parent
HOST = os.environ.get("SPRAT_TEST_DOCKER", "")
JOBS = Path(__file__).parent / "container_jobs.py"
if not HOST:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of an engine that has the image."""
    archive = tmp_path_factory.mktemp("image") / "image.tar"
    tool = [ROOT / "tools/image", archive, IMAGE, "--add", f"{JOBS}:/app/container_jobs.py"]
    subprocess.run(tool, check=True, stdout=subprocess.DEVNULL)
    engine = docker.APIClient(base_url=HOST, version="auto", timeout=300)
    with archive.open("rb") as file:
        engine.load_image(file)
    engine.close()
    archive.unlink()
    return HOST


@pytest.fixture
def build(host: str, tmp_path: Path) -> Iterator[Callable[..., DockerFleet]]:
    """Makes fleets, by default of one PostgreSQL store."""
    built = []

    def build(pool: str = "papers", url: str | None = None) -> DockerFleet:
        if url is None:
            url = postgres.shared_url()
            if not built:
                postgres.empty(url)
        fleet = DockerFleet(host, url, tmp_path / pool, pool)
        built.append(fleet)
        return fleet

    yield build
    for fleet in built:
        fleet.close()


@pytest.fixture
def fleet(build: Callable[..., DockerFleet]) -> DockerFleet:
    return build()
