"""What all our pods have in common: no root, no rights, nothing to write but /tmp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

USER = 1000  # some images name none, and then they would run as root


def template(labels: dict[str, str], pod: dict[str, Any], **annotations: str) -> dict[str, Any]:
    about: dict[str, Any] = {"labels": labels}
    if annotations:
        about["annotations"] = {f"sprat/{key}": value for key, value in annotations.items()}
    return {"metadata": about, "spec": pod}


def pod(
    container: dict[str, Any],
    *,
    account: str | None,
    has_token: bool = False,
    volumes: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> dict[str, Any]:
    """A pod of one container. Only one with a token can ask the cluster for anything."""
    who = {} if account is None else {"serviceAccountName": account}
    return {
        **who,
        "automountServiceAccountToken": has_token,
        "enableServiceLinks": False,  # its variables would begin with SPRAT_
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **more,
        "containers": [container],
        "volumes": [*volumes, {"name": "tmp", "emptyDir": {}}],
    }


def container(
    called: str,
    image: str,
    command: Sequence[str],
    *,
    env: Sequence[dict[str, Any]],
    resources: dict[str, Any],
    mounts: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> dict[str, Any]:
    return {
        "name": called,
        "image": image,
        "command": list(command),
        "env": list(env),
        **more,
        "resources": resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [*mounts, {"name": "tmp", "mountPath": "/tmp"}],
    }


def resources(cpu: str, memory: str, most_memory: str | None = None) -> dict[str, Any]:
    """A limit on memory where we know how much it takes; none on CPU, which only slows down."""
    asked = {"requests": {"cpu": cpu, "memory": memory}}
    return asked if most_memory is None else {**asked, "limits": {"memory": most_memory}}


def variable(called: str, value: str) -> dict[str, Any]:
    return {"name": called, "value": value}


def http_variable() -> dict[str, Any]:
    """For what reaches our own Service, which has no TLS, inside its namespace."""
    return variable("SPRAT_ALLOW_HTTP", "1")


def secret_variable(called: str, secret: str, key: str) -> dict[str, Any]:
    """A variable whose value is in the Secret."""
    return {"name": called, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def probe(path: str, port: str, *, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": port},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
