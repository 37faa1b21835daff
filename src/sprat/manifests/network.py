"""Who may talk to whom. Workers run code that others wrote: they reach names, the orchestrator and
what was allowed, and nobody reaches them. The orchestrator hears our own pods, and those that were
made its clients by a label, on the pod (of the same namespace) or on its whole namespace."""

from __future__ import annotations

from typing import Any

from sprat.launchers.kubernetes.names import POOL
from sprat.manifests.plan import (
    CONTROLLER,
    CONTROLLER_PORT,
    ORCHESTRATOR,
    PORT,
    TRIGGER,
    WORKER,
    Destination,
    ManifestPlan,
    labels,
    metadata,
    name,
)

CLIENT = {"sprat/client": "true"}
# Whoever started them, a launcher or a Deployment, their pods name their pool.
WORKERS = {"matchExpressions": [{"key": POOL, "operator": "Exists"}]}
DNS_PORTS = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]


def objects(plan: ManifestPlan) -> list[dict[str, Any]]:
    clients = [{"podSelector": {"matchLabels": CLIENT}}, _namespaces(CLIENT)]
    callers = [{"podSelector": WORKERS}, _pods(CONTROLLER), _pods(TRIGGER)]
    return [
        _policy(ORCHESTRATOR, ingress=[_rule("from", [*callers, *clients], PORT)]),
        _policy(CONTROLLER, ingress=[_rule("from", clients, CONTROLLER_PORT)]),
        _policy(TRIGGER, ingress=[]),
        _policy(WORKER, WORKERS, ingress=[], egress=_ways_out(plan.ways)),
    ]


def _ways_out(ways: tuple[Destination, ...]) -> list[dict[str, Any]]:
    names = {"to": [_namespaces({"kubernetes.io/metadata.name": "kube-system"})]}
    return [
        {**names, "ports": DNS_PORTS},
        _rule("to", [_pods(ORCHESTRATOR)], PORT),
        *(_rule("to", [{"ipBlock": {"cidr": way.cidr}}], way.port) for way in ways),
    ]


def _policy(
    component: str, pods: dict[str, Any] | None = None, **ways: list[dict[str, Any]]
) -> dict[str, Any]:
    """What a list does not name is refused; a direction without a list is left open."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(name(component), component),
        "spec": {
            "podSelector": pods or {"matchLabels": labels(component)},
            "policyTypes": [way.capitalize() for way in ways],
            **ways,
        },
    }


def _rule(way: str, peers: list[dict[str, Any]], port: int | None) -> dict[str, Any]:
    ports = {} if port is None else {"ports": [{"protocol": "TCP", "port": port}]}
    return {way: peers, **ports}


def _pods(component: str) -> dict[str, Any]:
    return {"podSelector": {"matchLabels": labels(component)}}


def _namespaces(having: dict[str, str]) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": having}}
