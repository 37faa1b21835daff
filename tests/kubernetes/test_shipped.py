"""The shipped manifests as they are: controllers in pods, with the rights that they get."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import IMAGE, NODE, Room, until
from lightkube.resources.apps_v1 import Deployment
from systems import ACCOUNT, POOL, System

pytestmark = pytest.mark.timeout(400)

SERVICE = "http://sprat-orchestrator:8000"  # this cluster has no DNS: an address takes its place
JOBS = 20
ABOUT = ("--image", IMAGE, "--pool", POOL, "--secret", "keys")


@pytest.fixture
def system(room: Room, tmp_path: Path) -> Iterator[System]:
    """An orchestrator that pods with a network of their own can reach."""
    system = System(tmp_path, room, host=NODE, launcher="process", launcher_options={})
    try:
        yield system
    finally:
        system.close()
        print(system.story())


def ready(room: Room) -> int:
    """How many controllers say that they are ready."""
    status = room.client.get(Deployment, ACCOUNT, namespace=room.name).status
    return (status and status.readyReplicas) or 0


def test_shipped_controllers_bring_workers_for_the_work(system: System, room: Room) -> None:
    made = json.dumps(system.manifests("rbac", "controller", *ABOUT))
    system.write_secret("keys-worker", SPRAT_URL=system.url, SPRAT_API_KEY=system.key("worker"))
    system.write_secret("keys", **{"controller-key": system.key("controller")})
    for one in json.loads(made.replace(SERVICE, system.url)):
        room.cluster.create(one)
    until(lambda: ready(room) == 2, "two ready controllers")
    ids = system.push(JOBS)
    system.until_done(JOBS)
    system.check_each_done_once(ids)
    places = {item.result["pod"] for item in system.items()}
    assert all(f"/{room.name}/sprat-w-" in place for place in places)
