"""For KEDA: its metrics-api trigger asks the orchestrator how many workers a pool needs."""

from __future__ import annotations

from typing import Any

from sprat.manifests import pod, worker
from sprat.manifests.plan import VIEWER_KEY, WORKER, ManifestPlan, labels, metadata

API = "keda.sh/v1alpha1"
AUTHENTICATION = "sprat-keda"
POLLING_SECONDS = 15
COOLDOWN_SECONDS = 60  # with nothing to do for so long, the last worker goes
IDLE_SECONDS = 30  # after which a worker of a job leaves by itself


def objects(plan: ManifestPlan) -> list[dict[str, Any]]:
    """Workers that stay, as a Deployment; KEDA sets how many they are."""
    made = [_authentication(plan)]
    for pool in worker.pools_of(plan):
        made += [worker.deployment(plan, pool), _scaled_object(plan, pool)]
    return made


def jobs(plan: ManifestPlan) -> list[dict[str, Any]]:
    """Workers that leave by themselves, as Jobs; KEDA starts them and stops none."""
    return [_authentication(plan), *(_scaled_job(plan, pool) for pool in worker.pools_of(plan))]


def _authentication(plan: ManifestPlan) -> dict[str, Any]:
    key = {"parameter": "token", "name": plan.secret, "key": VIEWER_KEY}
    return {
        "apiVersion": API,
        "kind": "TriggerAuthentication",
        "metadata": metadata(AUTHENTICATION, WORKER),
        "spec": {"secretTargetRef": [key]},
    }


def _scaled_object(plan: ManifestPlan, pool: str) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "ScaledObject",
        "metadata": metadata(worker.called(pool), WORKER, pool),
        "spec": {
            "scaleTargetRef": {"name": worker.called(pool)},
            "pollingInterval": POLLING_SECONDS,
            "cooldownPeriod": COOLDOWN_SECONDS,
            "minReplicaCount": 0,
            "maxReplicaCount": plan.most,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": at_once(plan)}},
            "triggers": [_trigger(plan, pool)],
        },
    }


def _scaled_job(plan: ManifestPlan, pool: str) -> dict[str, Any]:
    inner = worker.working_pod(plan, pool, idle_seconds=IDLE_SECONDS, restartPolicy="Never")
    return {
        "apiVersion": API,
        "kind": "ScaledJob",
        "metadata": metadata(worker.called(pool), WORKER, pool),
        "spec": {
            "pollingInterval": POLLING_SECONDS,
            "minReplicaCount": 0,
            "maxReplicaCount": plan.most,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 3,
            "rollout": {"strategy": "gradual"},  # the default ends workers in the middle of a job
            "scalingStrategy": {"strategy": "default"},  # starts what is missing, no more
            "jobTargetRef": {
                "parallelism": 1,
                "completions": 1,
                "backoffLimit": 0,
                "template": pod.template(labels(WORKER, pool), inner),
            },
            "triggers": [_trigger(plan, pool)],
        },
    }


def _trigger(plan: ManifestPlan, pool: str) -> dict[str, Any]:
    return {
        "type": "metrics-api",
        "metadata": {
            "url": f"{plan.far_url}/api/v1/pools/{pool}/desired",
            "valueLocation": "desired",
            "targetValue": "1",
            "authMode": "bearer",
        },
        "authenticationRef": {"name": AUTHENTICATION},
    }


def at_once(plan: ManifestPlan) -> dict[str, Any]:
    """The pool's policy has thought about it already: do what it says."""
    all_at_once = {"type": "Pods", "value": plan.most, "periodSeconds": 15}
    return {
        "scaleUp": {"stabilizationWindowSeconds": 0, "policies": [all_at_once]},
        "scaleDown": {"stabilizationWindowSeconds": 60, "policies": [all_at_once]},
    }
