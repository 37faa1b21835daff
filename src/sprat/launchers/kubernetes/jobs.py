"""Workers as Jobs, one each: the cluster's own records of them, and its own clearing away.

A Job makes its pod itself, so a quota is not told when it is made: it is found in the events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sprat.core import model
from sprat.launchers.kubernetes.client import EVENT, Cluster
from sprat.launchers.kubernetes.names import name_of
from sprat.launchers.kubernetes.pods import PodOrder, labels, pod_template_of
from sprat.launchers.kubernetes.reconcile import age, label, moment

REFUSED = {"involvedObject.kind": "Job", "reason": "FailedCreate"}
LINGERS_SECONDS = 5.0  # a Job may take this long to make its pod before its events are read


def job(order: PodOrder, worker_id: str) -> dict[str, Any]:
    """One worker's Job."""
    metadata: dict[str, Any] = {
        "name": name_of(worker_id),
        "namespace": order.namespace,
        "labels": {**order.options.labels, **labels(order, worker_id)},
    }
    if order.owner is not None:
        metadata["ownerReferences"] = [dict(order.owner)]
    spec = {
        "backoffLimit": 0,  # who tries again is the next pass
        "ttlSecondsAfterFinished": int(order.options.ttl_seconds),
        "template": pod_template_of(order, worker_id),
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def without_pods(
    cluster: Cluster,
    jobs: Sequence[Mapping[str, Any]],
    pods: Sequence[Mapping[str, Any]],
    workers: Sequence[model.WorkerRecord],
    now: float,
) -> dict[str, str]:
    """Which workers will not come because no pod may be made for their Job, and why."""
    have = {label(pod) for pod in pods}
    waiting = {name_of(w.worker_id): w.worker_id for w in workers if w.status == model.STARTING}
    bare = {
        label(job)
        for job in jobs
        if label(job) in waiting and label(job) not in have and age(job, now) >= LINGERS_SECONDS
    }
    if not bare:
        return {}
    reasons: dict[str, str] = {}
    for event in cluster.list(EVENT, fields=REFUSED):
        name = str(event.get("involvedObject", {}).get("name", ""))
        if name in bare:
            reasons[name] = str(event.get("message", "no pod may be made for its Job"))
    return {waiting[name]: " ".join(why.split()) for name, why in reasons.items()}


def finished(jobs: Sequence[Mapping[str, Any]], ttl_seconds: float, now: float) -> list[str]:
    """Jobs whose time is over where the cluster does not see to it itself."""
    names = []
    for job in jobs:
        for condition in job.get("status", {}).get("conditions", []):
            if condition.get("type") in ("Complete", "Failed") and condition["status"] == "True":
                ended = moment(condition.get("lastTransitionTime"), now)
                if now - ended >= ttl_seconds and not job["metadata"].get("deletionTimestamp"):
                    names.append(label(job))
    return names
