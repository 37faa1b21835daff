"""Cron triggers as Kubernetes CronJobs: manifests, for kubectl to apply or delete."""

from __future__ import annotations

import hashlib

from sprat.triggers import install

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.triggers.install import Entry

MAX_NAME_CHARS = 52  # of a CronJob: its jobs get eleven more
LABEL = "sprat/store"


def manifests(entries: Sequence[Entry], url: str, *, image: str, secret: str) -> dict[str, Any]:
    """A list of CronJobs that tick. The store's URL is not in it: a Secret holds that, as `url`."""
    jobs = [_cron_job(entry, url, image, secret) for entry in entries]
    return {"apiVersion": "v1", "kind": "List", "items": jobs}


def _cron_job(entry: Entry, url: str, image: str, secret: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "sprat", LABEL: install.mark(url)}
    variable = {"name": "SPRAT_URL", "valueFrom": {"secretKeyRef": {"name": secret, "key": "url"}}}
    container = {
        "name": "tick",
        "image": image,
        "command": ["python", *entry.command[1:]],
        "env": [variable],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": _name(entry.name, url), "labels": labels},
        "spec": {
            "schedule": entry.schedule,
            "timeZone": "Etc/UTC" if entry.timezone == "UTC" else entry.timezone,
            "concurrencyPolicy": "Forbid",  # a tick makes up for those that were left out
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {
                "spec": {
                    "backoffLimit": 0,
                    "ttlSecondsAfterFinished": 3600,
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                }
            },
        },
    }


def _name(name: str, url: str) -> str:
    """Lower case, digits and dashes; what had to be changed is told apart by a hash."""
    plain = "".join(c if c.isalnum() else "-" for c in name.lower())
    made = f"sprat-{install.mark(url)}-{plain}"
    if plain == name and len(made) <= MAX_NAME_CHARS:
        return made
    digest = hashlib.sha256(name.encode()).hexdigest()[:6]
    return f"{made[: MAX_NAME_CHARS - 7].rstrip('-')}-{digest}"
