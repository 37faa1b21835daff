"""Workers as the pods of a Deployment whose scale passes set, on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from clusters import IMAGE, Room, until
from launching import (
    allow_pods,
    given_up,
    live,
    lost,
    passes_until,
    pod_of,
    pods,
    push,
    refused,
    until_at_work,
    until_cleared,
    until_done,
)
from lightkube.codecs import from_dict
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Pod
from systems import POOL, System

from sprat.core.errors import SpratError
from sprat.fleet import checker

pytestmark = pytest.mark.timeout(400)

NAME = "papers"


@pytest.fixture
def system(tmp_path: Path, room: Room) -> Iterator[System]:
    options = {"mode": "deployment", "deployment": NAME, "namespace": room.name}
    made = System(tmp_path, room, max_workers=4, launcher_options=options)
    room.client.create(deployment(room.name))
    yield made
    room.client.delete(Deployment, NAME, namespace=room.name)
    made.close()


def deployment(namespace: str, image: str = IMAGE) -> Any:
    """As the documentation has it, and what it leaves to the reader."""
    page = Path(__file__).parents[2] / "docs" / "operate" / "kubernetes.md"
    block = page.read_text().split("The pods of the Deployment need this")[1].split("```")[1]
    spec = yaml.safe_load(block.removeprefix("yaml"))["spec"]
    spec["hostNetwork"] = True
    (worker,) = spec["containers"]
    worker |= {
        "image": image,
        "imagePullPolicy": "Never",
        "envFrom": [{"secretRef": {"name": "sprat"}}],
    }
    worker["env"].append({"name": "SPRAT_DIRECTORY", "value": "/app"})
    labels = {"app": NAME}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return from_dict(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
        }
    )


def replicas(system: System) -> int | None:
    found = system.room.client.get(Deployment, NAME, namespace=system.room.name)
    return found.spec.replicas if found.spec else None


def test_deployment_scales_from_zero_and_back(system: System) -> None:
    for size in (12, 24):
        ids = push(system, 12, 0.3)
        until_done(system, size)
        assert all(system.pool.get(item_id).attempts == 1 for item_id in ids)
        until_cleared(system)
        assert replicas(system) == 0
    assert {w.status for w in system.store.workers.list(pool_id=POOL)} == {"terminated"}


def test_scale_down_interrupts_no_job(system: System) -> None:
    ids = push(system, 60, 0.5)
    passes_until(system, lambda: len(system.store.workers.list(status="active")) == 4, "four")
    system.pool.configure(max_workers=1)
    passes_until(system, lambda: replicas(system) == 1, "the scale of one")
    until_done(system, 60)
    assert all(system.pool.get(item_id).attempts == 1 for item_id in ids)
    assert not lost(system)


def test_busy_pod_that_is_deleted_finishes_its_job(system: System) -> None:
    (item_id,) = push(system, 1, 8.0)
    worker = until_at_work(system, item_id)
    system.room.client.delete(Pod, pod_of(worker), namespace=system.room.name)
    until(lambda: system.pool.get(item_id).status == "done", "the end of the job")
    assert system.pool.get(item_id).attempts == 1
    until_cleared(system)


def test_quota_leaves_the_others_at_work(system: System) -> None:
    allow_pods(system.room, 2)
    push(system, 24, 1.0)
    until_done(system, 24)
    assert refused(system)
    until_cleared(system)


def test_image_that_cannot_be_pulled_is_told(system: System) -> None:
    system.room.client.replace(deployment(system.room.name, "127.0.0.1:1/nothing:1"))
    push(system, 1)
    (worker,) = passes_until(system, lambda: given_up(system), "the reason")
    assert "ErrImageNeverPull" in str(worker.reason)
    assert not live(system) or live(system)[0].worker_id != worker.worker_id


def test_missing_deployment_is_told_in_one_sentence(system: System) -> None:
    options = dict(system.pool.state().settings.launcher_options)
    system.pool.configure(launcher_options={**options, "deployment": "absent"})
    push(system, 1)
    with pytest.raises(SpratError, match=r'get deployments in .* "absent" not found'):
        checker.check(system.store, POOL)
    assert not pods(system)
