"""The controller: `sprat controller` with its configuration, near the workers that it starts.

Two of them are safe: one leads, the other takes over when the first is gone.
"""

from __future__ import annotations

import hashlib
from typing import Any

from sprat.manifests import availability, pod, rbac, worker, yaml_text
from sprat.manifests.plan import (
    CONTROLLER,
    CONTROLLER_KEY,
    CONTROLLER_PORT,
    ManifestPlan,
    labels,
    metadata,
    name,
)

FILE = "worker-controller-config.yaml"
DIRECTORY = "/etc/sprat"


def objects(plan: ManifestPlan) -> list[dict[str, Any]]:
    text = plan.configuration or yaml_text.document(configuration(plan))
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(name(CONTROLLER), CONTROLLER),
        "data": {FILE: text},
    }
    return [config_map, _deployment(plan, text), availability.budget(CONTROLLER)]


def configuration(plan: ManifestPlan) -> dict[str, Any]:
    """The controller's file for pools that were named."""
    scale_sets = [{"pool": pool} for pool in worker.pools_of(plan)]
    options = {
        "mode": rbac.MODE,
        "image": plan.image,
        "secret": plan.worker_secret,
        "template": worker.template(plan),
    }
    overrides = {} if plan.max_workers is None else {"max_replicas": plan.max_workers}
    return {
        "orchestrator_url": plan.server_url,
        "scale_sets": scale_sets,
        **({"overrides": overrides} if overrides else {}),
        "launcher": "kubernetes",
        "launcher_options": options,
    }


def _deployment(plan: ManifestPlan, text: str) -> dict[str, Any]:
    mount = {"name": "config", "mountPath": DIRECTORY, "readOnly": True}
    container = pod.container(
        CONTROLLER,
        plan.image,
        ["sprat", "controller", f"{DIRECTORY}/{FILE}", "--listen", f"0.0.0.0:{CONTROLLER_PORT}"],
        env=_variables(plan),
        ports=[{"name": "http", "containerPort": CONTROLLER_PORT}],
        livenessProbe=pod.probe("/healthz", "http", period=10, failures=3),
        readinessProbe=pod.probe("/readyz", "http", period=10, failures=3),
        resources=pod.resources("50m", "64Mi", "256Mi"),
        mounts=[mount],
    )
    inner = pod.pod(
        container,
        account=name(CONTROLLER),
        has_token=True,  # it starts pods
        topologySpreadConstraints=[availability.spread(CONTROLLER)],
        volumes=[{"name": "config", "configMap": {"name": name(CONTROLLER)}}],
    )
    changed = hashlib.sha256(text.encode()).hexdigest()[:16]  # another text, other pods
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(name(CONTROLLER), CONTROLLER),
        "spec": {
            "replicas": availability.REPLICAS,
            "selector": {"matchLabels": labels(CONTROLLER)},
            "template": pod.template(labels(CONTROLLER), inner, configuration=changed),
        },
    }


def _variables(plan: ManifestPlan) -> list[dict[str, Any]]:
    key = pod.secret_variable("SPRAT_API_KEY", plan.secret, CONTROLLER_KEY)
    if plan.has_url:
        return [key]
    ours = [key, pod.http_variable()]
    if plan.configuration is None:
        return ours
    return [pod.variable("ORCHESTRATOR_URL", plan.server_url), *ours]
