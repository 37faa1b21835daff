"""What a client of the cluster has to know."""

from __future__ import annotations

import json
from pathlib import Path

from addresses import API


def kubeconfig(authority: Path, *, token: str, namespace: str = "default") -> str:
    """The text of a kubeconfig. JSON is YAML, too."""
    cluster = {"server": API, "certificate-authority": str(authority)}
    about = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [
            {
                "name": "test",
                "context": {"cluster": "test", "user": "test", "namespace": namespace},
            }
        ],
        "current-context": "test",
    }
    return json.dumps(about, indent=2)
