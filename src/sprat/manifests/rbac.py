"""Rights, in one namespace only: the controller may start pods and look after them, workers may
do nothing."""

from __future__ import annotations

from sprat.manifests.plan import CONTROLLER, WORKER, Plan, metadata, name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RULES: tuple[dict[str, Any], ...] = (
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete", "list"]},
)


def objects(plan: Plan) -> list[dict[str, Any]]:
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
        "rules": [dict(rule) for rule in RULES],
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
