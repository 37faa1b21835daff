"""Fixtures: a real cluster, and for every test a namespace of its own in it.

They run inside the cluster's network, which `make test-kubernetes` makes. Elsewhere there is
nothing to collect here.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

RUNNING = os.environ.get("SPRAT_TEST_CLUSTER")

if RUNNING:
    from clusters import Cluster, Room
    from systems import System
else:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(Path(str(RUNNING)))
    yield cluster
    cluster.close()


@pytest.fixture
def room(cluster: Cluster) -> Iterator[Room]:
    room = Room(cluster, f"test-{uuid.uuid4().hex[:8]}")
    yield room
    room.leave()


@pytest.fixture
def system(room: Room, tmp_path: Path) -> Iterator[System]:
    system = System(tmp_path, room)
    try:
        yield system
    finally:
        system.close()
        print(system.story())  # shown when the test fails
