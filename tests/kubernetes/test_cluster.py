"""The cluster itself: what the other tests take for granted."""

from __future__ import annotations

import pytest
from clusters import IMAGE, Cluster, Room, until
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Pod


def phase(room: Room, name: str) -> str | None:
    status = room.client.get(Pod, name, namespace=room.name).status
    return status.phase if status else None


def test_pod_runs_our_image_and_ends(room: Room) -> None:
    container = Container(name="sprat", image=IMAGE, command=["sprat", "--version"])
    spec = PodSpec(containers=[container], restartPolicy="Never", hostNetwork=True)
    room.client.create(Pod(metadata=ObjectMeta(name="one", namespace=room.name), spec=spec))
    until(lambda: phase(room, "one") == "Succeeded", "the end of the pod")


@pytest.mark.alone
def test_api_server_comes_back_with_all_it_knew(cluster: Cluster, room: Room) -> None:
    cluster.restart_api_server()
    assert room.pods() == []
