"""Two of each, on two nodes where there are two, and never both away when a node is drained."""

from __future__ import annotations

from typing import Any

from sprat.manifests.plan import labels, metadata, name

REPLICAS = 2


def spread(component: str) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels(component)},
    }


def budget(component: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name(component), component),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels(component)}},
    }
