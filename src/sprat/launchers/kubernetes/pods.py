"""The pod of a worker, as the API wants it: the user's template with ours merged into it. Pure.

What the template says stays, except for what makes the pod this worker: its name, our labels, the
command, our variables and the restart policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sprat.core.errors import InvalidInput
from sprat.core.record import Record
from sprat.launchers.kubernetes import pod_template
from sprat.launchers.kubernetes.names import (
    POOL,
    STORE,
    WORKER,
    has_password,
    label_of,
    name_of,
    store_mark,
)
from sprat.launchers.kubernetes.options import Options

HERE = ("localhost", "127.", "[::1]")
HAND_BACK_SECONDS = 10  # before the grace is over: Kubernetes itself leaves two

CONTAINER_SECURITY = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
POD_SECURITY = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


class PodOrder(Record):
    """What the pods of one launch have in common."""

    url: str
    pool: str
    options: Options
    namespace: str
    mark: str  # of the cluster
    owner: Mapping[str, Any] | None = None  # Kubernetes deletes the pods with it
    has_key: bool = False  # whether we use an API key ourselves
    allows_http: bool = False  # whether we may use http:// outside this machine ourselves


def pod(order: PodOrder, worker_id: str) -> dict[str, Any]:
    """One worker's pod."""
    template = pod_template_of(order, worker_id)
    name = name_of(worker_id)
    metadata = {**template["metadata"], "name": name, "namespace": order.namespace}
    if order.owner is not None:
        metadata["ownerReferences"] = [dict(order.owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def pod_template_of(order: PodOrder, worker_id: str) -> dict[str, Any]:
    """Metadata and spec of one worker's pod, without its name."""
    options = order.options
    base = dict(options.template.get("spec", {}))
    spec = {
        "terminationGracePeriodSeconds": int(options.grace_seconds),
        "automountServiceAccountToken": options.service_account is not None,
        "enableServiceLinks": False,  # a Service of ours would become variables with our names
        **base,
        "restartPolicy": "Never",
        "securityContext": {**POD_SECURITY, **base.get("securityContext", {})},
    }
    if options.service_account is not None:
        spec["serviceAccountName"] = options.service_account
    if options.host_network:
        spec["hostNetwork"] = True
    if options.node_selector:
        spec["nodeSelector"] = {**base.get("nodeSelector", {}), **options.node_selector}
    containers = [dict(container) for container in base.get("containers", [])] or [{}]
    place = pod_template.worker_of(options.template) or 0
    containers[place] = _container(order, worker_id, containers[place], spec)
    return {"metadata": _metadata(order, worker_id), "spec": {**spec, "containers": containers}}


def labels(order: PodOrder, worker_id: str) -> dict[str, str]:
    return {
        POOL: label_of(order.pool),
        STORE: store_mark(order.url),
        WORKER: name_of(worker_id),
    }


def before_stop(grace_seconds: int) -> str:
    """What a pod runs when it is deleted. The first signal lets the worker finish its job; shortly
    before the grace is over, another makes it hand the job back, uncharged, which a kill would
    not do."""
    finish = grace_seconds - min(HAND_BACK_SECONDS, grace_seconds // 2)
    return f"kill -TERM 1 && sleep {finish} && kill -TERM 1; while sleep 1; do :; done"


def check_reach(order: PodOrder) -> None:
    """Refuse what cannot work in a pod, or would put a secret into its spec."""
    options, url = order.options, order.url
    if options.secret is not None:
        return
    how = "make a Secret with SPRAT_URL (and SPRAT_API_KEY), and name it in launcher_options.secret"
    if has_password(url) or order.has_key:
        what = "the store's URL holds a password" if has_password(url) else "SPRAT_API_KEY is set"
        raise InvalidInput(f"{what}, and that does not go into a pod's spec: {how}")
    if url.startswith(("sqlite:", "memory:")):
        raise InvalidInput(
            "a pod cannot open a file of this machine: use postgresql://, redis:// or https://"
        )
    host = url.partition("://")[2].rpartition("@")[2]
    shares = options.host_network or options.template.get("spec", {}).get("hostNetwork")
    if host.startswith(HERE) and not shares:
        raise InvalidInput(
            f"{host.partition('/')[0]} is another place inside a pod: use an address "
            f"that pods can reach, or {how}"
        )


def _metadata(order: PodOrder, worker_id: str) -> dict[str, Any]:
    base = order.options.template.get("metadata", {})
    theirs = {**base.get("labels", {}), **order.options.labels}
    metadata = {"labels": {**theirs, **labels(order, worker_id)}}
    if base.get("annotations"):
        metadata["annotations"] = dict(base["annotations"])
    return metadata


def _container(
    order: PodOrder, worker_id: str, base: Mapping[str, Any], spec: Mapping[str, Any]
) -> dict[str, Any]:
    options = order.options
    container = {
        "name": pod_template.OURS,
        "terminationMessagePolicy": "FallbackToLogsOnError",  # the last lines come with the status
        **base,
        "command": ["sprat", "work", order.pool, "--worker-id", worker_id, "--launched"],
        "env": _env(order, base.get("env", [])),
        "securityContext": {**CONTAINER_SECURITY, **base.get("securityContext", {})},
    }
    container.pop("args", None)
    if not spec.get("shareProcessNamespace") and not spec.get("hostPID"):
        grace = int(spec["terminationGracePeriodSeconds"])
        hook = {"exec": {"command": ["/bin/sh", "-c", before_stop(grace)]}}
        container["lifecycle"] = {"preStop": hook, **base.get("lifecycle", {})}
    if options.image:
        container["image"] = options.image
    if options.image_pull_policy is not None:
        container["imagePullPolicy"] = options.image_pull_policy
    if options.secret is not None:
        source = {"secretRef": {"name": options.secret}}
        container["envFrom"] = [*base.get("envFrom", []), source]
    if resources := _resources(options, base.get("resources", {})):
        container["resources"] = resources
    return container


def _env(order: PodOrder, extra: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Theirs, and ours under the names that are ours."""
    secret = order.options.secret
    ours: list[dict[str, Any]] = [
        {"name": "SPRAT_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "SPRAT_PLACE", "value": place(order.mark, order.namespace, "$(SPRAT_POD)")},
        {"name": "SPRAT_DIRECTORY", "value": order.options.directory},
        {"name": "SPRAT_URL", "value": order.url}
        if secret is None
        else {
            "name": "SPRAT_URL",
            "valueFrom": {"secretKeyRef": {"name": secret, "key": "SPRAT_URL"}},
        },
    ]
    if order.allows_http:
        ours.append({"name": "SPRAT_ALLOW_HTTP", "value": "1"})
    names = {variable["name"] for variable in ours}
    return [*(variable for variable in extra if variable.get("name") not in names), *ours]


def place(mark: str, namespace: str, name: str) -> str:
    """Where a worker says that it is: which cluster, which namespace, which pod."""
    return f"{mark}/{namespace}/{name}"


def _resources(options: Options, base: Mapping[str, Any]) -> dict[str, Any]:
    requests = {"cpu": options.cpu, "memory": options.memory}
    limits = {"cpu": options.cpu_limit, "memory": options.memory_limit}
    resources = dict(base)
    for key, amounts in (("requests", requests), ("limits", limits)):
        merged = {**base.get(key, {}), **{k: str(v) for k, v in amounts.items() if v is not None}}
        if merged:
            resources[key] = merged
    return resources
