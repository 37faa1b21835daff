"""Rights within one namespace: the controller may do what its launcher has to, a worker nothing."""

from __future__ import annotations

from typing import Any

from sprat.launchers.kubernetes import rbac
from sprat.launchers.kubernetes.options import POD
from sprat.manifests.plan import CONTROLLER, WORKER, ManifestPlan, metadata, name

MODE = POD  # how the controller starts workers


def objects(plan: ManifestPlan) -> list[dict[str, Any]]:
    return [_account(CONTROLLER), _account(WORKER), _role(), _binding()]


def _account(component: str) -> dict[str, Any]:
    """Pods say themselves whether they get a token; only the controller's does."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(name(component), component),
        "automountServiceAccountToken": False,
    }


def _role() -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata(name(CONTROLLER), CONTROLLER),
        "rules": rbac.rules(MODE),
    }


def _binding() -> dict[str, Any]:
    """Without the namespace of its subject: who places it says that too."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata(name(CONTROLLER), CONTROLLER),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": name(CONTROLLER),
        },
        "subjects": [{"kind": "ServiceAccount", "name": name(CONTROLLER)}],
    }
