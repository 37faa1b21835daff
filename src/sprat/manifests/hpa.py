"""For those with Prometheus and its adapter: an autoscaler that reads our figures."""

from __future__ import annotations

from typing import Any

from sprat.manifests import keda, worker
from sprat.manifests.plan import WORKER, ManifestPlan, metadata

METRIC = "sprat_worker_pool_desired_workers"


def objects(plan: ManifestPlan) -> list[dict[str, Any]]:
    made = []
    for pool in worker.pools_of(plan):
        made += [worker.deployment(plan, pool), _autoscaler(plan, pool)]
    return made


def _autoscaler(plan: ManifestPlan, pool: str) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": worker.called(pool)}
    metric = {
        "metric": {"name": METRIC, "selector": {"matchLabels": {"pool": pool}}},
        "target": {"type": "AverageValue", "averageValue": "1"},
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(worker.called(pool), WORKER, pool),
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,  # it cannot come back from none
            "maxReplicas": plan.most,
            "metrics": [{"type": "External", "external": metric}],
            "behavior": keda.at_once(plan),
        },
    }
