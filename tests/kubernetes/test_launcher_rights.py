"""What the launcher asks of a cluster is what its role allows, and what it says when it is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusters import Room
from launching import (
    allow_pods,
    choose,
    given_up,
    passes_until,
    push,
    refused,
    until_cleared,
    until_done,
)
from lightkube.codecs import from_dict
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ServiceAccount
from systems import POOL, System
from test_launcher_deployment import NAME, deployment

from sprat.core.errors import LaunchFailed, SpratError
from sprat.fleet import checker
from sprat.launchers.kubernetes import client, rbac

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str, str]]:
    """Every request of the launcher, as a role names it."""
    found: set[tuple[str, str, str]] = set()
    do = client.Cluster._do

    def noted(self: Any, verb: str, kind: client.ObjectKind, step: Callable[[], Any]) -> Any:
        found.add((kind.group, kind.resource, verb))
        return do(self, verb, kind, step)

    monkeypatch.setattr(client.Cluster, "_do", noted)
    return found


@pytest.fixture
def system(tmp_path: Path, room: Room) -> Any:
    made = System(tmp_path, room, max_workers=4)
    yield made
    made.close()


def bind(room: Room, rules: list[dict[str, Any]]) -> None:
    """A service account that may do this and nothing else."""
    about = {"name": "launcher", "namespace": room.name}
    group = "rbac.authorization.k8s.io"
    room.client.create(ServiceAccount(metadata=ObjectMeta(**about)))
    version = {"apiVersion": f"{group}/v1", "metadata": about}
    room.client.create(from_dict({**version, "kind": "Role", "rules": rules}))
    subject = {"kind": "ServiceAccount", **about}
    role = {"apiGroup": group, "kind": "Role", "name": "launcher"}
    binding = {**version, "kind": "RoleBinding", "subjects": [subject], "roleRef": role}
    room.client.create(from_dict(binding))


def become(room: Room, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = room.cluster.kubeconfig(place, namespace=room.name, account="launcher")
    monkeypatch.setenv("KUBECONFIG", str(file))


def needed(mode: str) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb) for group, resource, verbs in rbac.NEEDS[mode] for verb in verbs
    }


@pytest.mark.parametrize("mode", list(rbac.NEEDS))
def test_role_is_enough_and_no_more_than_is_used(
    mode: str,
    system: System,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    used: set[tuple[str, str, str]],
) -> None:
    if mode == "deployment":
        options = {"mode": mode, "deployment": NAME, "namespace": system.room.name}
        system.pool.configure(launcher_options=options)
        system.room.client.create(deployment(system.room.name))
    else:
        choose(system, mode=mode)
    bind(system.room, rbac.rules(mode, deployment=NAME))
    become(system.room, tmp_path, monkeypatch)
    allow_pods(system.room, 2)
    push(system, 12, 2.0)
    passes_until(system, lambda: refused(system), "what the quota forbids")
    until_done(system, 12)
    until_cleared(system)
    assert used == needed(mode)
    if mode == "deployment":
        system.room.client.delete(Deployment, NAME, namespace=system.room.name)


def test_owner_takes_its_workers_along(
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.room.client.create(deployment(system.room.name))
    choose(system, owner=NAME)
    bind(system.room, rbac.rules("pod", owner=NAME))
    become(system.room, tmp_path, monkeypatch)
    (item_id,) = push(system, 1, 3600.0)
    checker.check(system.store, POOL)
    (pod,) = system.room.pods()
    assert [(one.kind, one.name) for one in pod.metadata.ownerReferences] == [("Deployment", NAME)]
    system.pool.cancel(item_id)
    system.room.client.delete(Deployment, NAME, namespace=system.room.name)
    passes_until(system, lambda: not system.room.pods(), "the end of the pod")


def test_missing_right_is_told_in_one_sentence(
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind(system.room, [])
    become(system.room, tmp_path, monkeypatch)
    push(system, 1)
    with pytest.raises(LaunchFailed) as caught:
        checker.check(system.store, POOL)
    told = f"the cluster does not let us create pods in the namespace {system.room.name}"
    assert str(caught.value).startswith(f"{told}: grant it with a role (")
    assert "\n" not in str(caught.value)
    assert given_up(system)


def test_wrong_login_is_told_in_one_sentence(
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind(system.room, [])
    become(system.room, tmp_path, monkeypatch)
    file = tmp_path / f"{system.room.name}-launcher.kubeconfig"
    file.write_text(re.sub(r'(token"?: "?)', r"\1not-", file.read_text()))
    push(system, 1)
    with pytest.raises(SpratError, match=r"the cluster does not know us \(401\): renew the login"):
        checker.check(system.store, POOL)


def test_silent_api_is_told_in_one_sentence(
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind(system.room, [])
    become(system.room, tmp_path, monkeypatch)
    file = tmp_path / f"{system.room.name}-launcher.kubeconfig"
    file.write_text(file.read_text().replace("10.0.0.1:443", "10.0.0.1:9"))
    push(system, 1)
    with pytest.raises(
        SpratError, match=r"the cluster's API at https://10.0.0.1:9 cannot be reached"
    ):
        checker.check(system.store, POOL)
    assert given_up(system)
    assert system.pool.size() == 1
