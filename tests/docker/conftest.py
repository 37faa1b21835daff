"""Fixtures: the engine that tools/docker-engine started, an image with our jobs, and yards.

`make test-docker` starts it. Elsewhere there is nothing to collect here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest
from servers import postgres
from yards import IMAGE, Yard

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
def build(host: str, tmp_path: Path) -> Iterator[Callable[..., Yard]]:
    """Makes yards, by default of one PostgreSQL store."""
    built = []

    def build(pool: str = "papers", url: str | None = None) -> Yard:
        if url is None:
            url = postgres.shared_url()
            if not built:
                postgres.empty(url)
        yard = Yard(host, url, tmp_path / pool, pool)
        built.append(yard)
        return yard

    yield build
    for yard in built:
        yard.close()


@pytest.fixture
def yard(build: Callable[..., Yard]) -> Yard:
    return build()
