"""The shipped role is enough for a controller (the other tests use it), and for nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from clusters import Cluster, Room
from lightkube import ApiError, Client
from lightkube.models.authorization_v1 import SelfSubjectRulesReviewSpec
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.authorization_v1 import SelfSubjectRulesReview
from lightkube.resources.core_v1 import ConfigMap, Namespace, Node, Pod, Secret, ServiceAccount
from lightkube.resources.rbac_authorization_v1 import ClusterRole, RoleBinding
from systems import ACCOUNT, System

Right = tuple[str, str, str]  # API group, resource, verb

POD = PodSpec(containers=[Container(name="any", image="localhost/any:1")])
FORBIDDEN: dict[str, Callable[[Client, str], object]] = {
    "pods of another namespace": lambda us, _: list(us.list(Pod, namespace="kube-system")),
    "pods of all namespaces": lambda us, _: list(us.list(Pod, namespace="*")),
    "a pod elsewhere": lambda us, _: us.create(
        Pod(metadata=ObjectMeta(name="any", namespace="default"), spec=POD)
    ),
    "deleting elsewhere": lambda us, _: us.delete(Pod, "any", namespace="default"),
    "secrets": lambda us, here: us.get(Secret, "sprat", namespace=here),
    "config maps": lambda us, here: list(us.list(ConfigMap, namespace=here)),
    "deployments": lambda us, here: list(us.list(Deployment, namespace=here)),
    "nodes": lambda us, _: list(us.list(Node)),
    "namespaces": lambda us, here: us.delete(Namespace, here),
    "its own rights": lambda us, here: us.delete(RoleBinding, ACCOUNT, namespace=here),
    "roles of the cluster": lambda us, _: list(us.list(ClusterRole)),
    "accounts": lambda us, here: list(us.list(ServiceAccount, namespace=here)),
}


@pytest.fixture
def controller(system: System, cluster: Cluster) -> Iterator[Client]:
    """The API as the controller sees it."""
    with cluster.open(system.kubeconfig()) as client:
        yield client


def rights(client: Client, namespace: str) -> set[Right]:
    """All that we may do there, except for asking what we may."""
    review = SelfSubjectRulesReview(spec=SelfSubjectRulesReviewSpec(namespace=namespace))
    rules = client.create(review).status.resourceRules
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule.apiGroups or ()
        for resource in rule.resources or ()
        for verb in rule.verbs
        if group != "authorization.k8s.io"
    }


def refusal(attempt: Callable[[Client, str], object], client: Client, namespace: str) -> object:
    """The code with which the API server refuses it; None if it does not."""
    try:
        attempt(client, namespace)
    except ApiError as error:
        return error.status.code
    return None


def test_controller_may_handle_pods_of_its_namespace_and_nothing_else(
    controller: Client, room: Room
) -> None:
    assert rights(controller, room.name) == {("", "pods", v) for v in ("create", "delete", "list")}
    for namespace in ("default", "kube-system"):
        assert rights(controller, namespace) == set()

    for what, attempt in FORBIDDEN.items():
        assert refusal(attempt, controller, room.name) == 403, what


def test_workers_have_no_rights(system: System, cluster: Cluster, room: Room) -> None:
    system.kubeconfig()  # with the controller's role comes the workers' account
    file = cluster.kubeconfig(system.place, namespace=room.name, account="sprat-worker")
    with cluster.open(file) as worker:
        assert rights(worker, room.name) == set()
        for what, attempt in FORBIDDEN.items():
            assert refusal(attempt, worker, room.name) == 403, what
