"""Cron triggers as CronJobs that tick: whether a trigger is due is decided in the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sprat.manifests import names, pod
from sprat.manifests.plan import CONTROLLER, TRIGGER, URL_KEY, ManifestPlan, labels, name
from sprat.triggers import install
from sprat.triggers.install import Entry

MAX_NAME_CHARS = 52  # of a CronJob: its jobs get eleven more
STORE_LABEL = "sprat/store"


def objects(plan: ManifestPlan, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """For a cluster with our controller: a tick may run a scaling pass, so it has its rights."""
    return [_cron_job(one, plan, front=name(TRIGGER), account=name(CONTROLLER)) for one in entries]


def of_store(plan: ManifestPlan, entries: Sequence[Entry], url: str) -> list[dict[str, Any]]:
    """The same without rights in the cluster, marked with the store that they are for."""
    mark = install.mark(url)
    return [
        _cron_job(one, plan, front=f"sprat-{mark}", account=None, more={STORE_LABEL: mark})
        for one in entries
    ]


def _cron_job(
    entry: Entry,
    plan: ManifestPlan,
    *,
    front: str,
    account: str | None,
    more: dict[str, str] | None = None,
) -> dict[str, Any]:
    marks = {**labels(TRIGGER), **(more or {})}
    container = pod.container(
        "tick",
        plan.image,
        ["sprat", *entry.command[3:]],  # python -m sprat, of the machine that we are on
        env=[pod.secret_variable("SPRAT_URL", plan.secret, URL_KEY)],
        resources=pod.resources("50m", "64Mi"),  # a trigger may run a program of yours
    )
    inner = pod.pod(
        container, account=account, has_token=account is not None, restartPolicy="Never"
    )
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": names.derived(front, entry.name, MAX_NAME_CHARS), "labels": marks},
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
                    "template": pod.template(marks, inner),
                }
            },
        },
    }
