"""The orchestrator: `sprat serve` in several pods behind one Service.

It keeps nothing itself, so any number of replicas may serve one store, if that is a server.
"""

from __future__ import annotations

from typing import Any

from sprat.manifests import availability, pod
from sprat.manifests.plan import ORCHESTRATOR, PORT, URL_KEY, ManifestPlan, labels, metadata, name

# After SIGTERM it goes on answering for so long, while the cluster learns that it leaves; then it
# has GRACE_SECONDS in all to finish what is under way, which `sprat serve` gives 20 seconds.
LINGER_SECONDS = 5
GRACE_SECONDS = 30


def objects(plan: ManifestPlan) -> list[dict[str, Any]]:
    return [_account(), _deployment(plan), _service(), availability.budget(ORCHESTRATOR)]


def _account() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(name(ORCHESTRATOR), ORCHESTRATOR),
        "automountServiceAccountToken": False,
    }


def _deployment(plan: ManifestPlan) -> dict[str, Any]:
    command = ["sprat", "serve", "--host", "0.0.0.0", "--port", str(PORT)]
    command += ["--linger", str(LINGER_SECONDS), "--json-logs"]
    container = pod.container(
        ORCHESTRATOR,
        plan.image,
        command,
        env=[pod.secret_variable("SPRAT_URL", plan.secret, URL_KEY)],
        ports=[{"name": "http", "containerPort": PORT}],
        startupProbe=pod.probe("/healthz", "http", period=2, failures=30),
        livenessProbe=pod.probe("/healthz", "http", period=10, failures=3),
        readinessProbe=pod.probe("/readyz", "http", period=5, failures=2),
        resources=pod.resources("100m", "128Mi", "512Mi"),
    )
    inner = pod.pod(
        container,
        account=name(ORCHESTRATOR),
        terminationGracePeriodSeconds=GRACE_SECONDS,
        topologySpreadConstraints=[availability.spread(ORCHESTRATOR)],
    )
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(name(ORCHESTRATOR), ORCHESTRATOR),
        "spec": {
            "replicas": availability.REPLICAS,
            "selector": {"matchLabels": labels(ORCHESTRATOR)},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
            },
            "template": pod.template(labels(ORCHESTRATOR), inner),
        },
    }


def _service() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name(ORCHESTRATOR), ORCHESTRATOR),
        "spec": {
            "selector": labels(ORCHESTRATOR),
            "ports": [{"name": "http", "port": PORT, "targetPort": "http"}],
        },
    }
