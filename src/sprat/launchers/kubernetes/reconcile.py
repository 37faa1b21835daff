"""Who of a pool's workers is gone, and which pods are to be cleared away, from one look. Pure.

A worker and its pod have the same name. The workers were listed before the pods, so a pod may be
newer than the list: one whose worker is not on it counts as left behind only when it is old.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sprat.core import model
from sprat.core.record import Record
from sprat.launchers.kubernetes import reasons
from sprat.launchers.kubernetes.names import STORE, WORKER, name_of
from sprat.launchers.kubernetes.pods import place

LEFT_BEHIND_SECONDS = 120.0  # no two clocks are this far apart, and no pass takes this long
EARLY_SECONDS = 2.0  # a deadline is told with its reason before the reaper tells it without


class Situation(Record):
    """What one pass sees of a pool's pods."""

    pods: Sequence[Mapping[str, Any]]
    workers: Sequence[model.WorkerRecord]  # the live ones
    now: float  # by this machine's clock
    mark: str
    namespace: str
    store: str  # the mark of ours: what belongs to another one is left alone
    start_deadline_seconds: float
    ttl_seconds: float


class PodChanges(Record):
    """What follows from it."""

    gone: Mapping[str, str]  # worker id: why
    delete: tuple[str, ...]  # names, as in the label


def judge(situation: Situation) -> PodChanges:
    # Of two pods of one Job, the one that has not ended.
    pods = {label(pod): pod for pod in sorted(situation.pods, key=_has_ended, reverse=True)}
    workers = {name_of(worker.worker_id): worker for worker in situation.workers}
    gone: dict[str, str] = {}
    delete: list[str] = []
    for name, pod in pods.items():
        worker = workers.get(name)
        why = None if worker is None else _why_gone(situation, pod)
        if worker is not None and why is not None:
            gone[worker.worker_id] = why
        if _is_ours(situation, pod) and _is_litter(situation, pod, worker, why):
            delete.append(name)
    for name, worker in workers.items():
        if name not in pods and _was_here(situation, worker):
            gone[worker.worker_id] = "its pod is gone: somebody deleted it, or its node was lost"
    return PodChanges(gone=gone, delete=tuple(delete))


def _has_ended(pod: Mapping[str, Any]) -> bool:
    return reasons.fate(pod).state == reasons.FINISHED


def label(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("labels", {}).get(WORKER, ""))


def age(resource: Mapping[str, Any], now: float) -> float:
    return now - moment(resource["metadata"].get("creationTimestamp"), now)


def moment(text: object, otherwise: float) -> float:
    """A time of the API as seconds since 1970."""
    if not text:
        return otherwise
    return datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()


def _why_gone(situation: Situation, pod: Mapping[str, Any]) -> str | None:
    """Why the live worker of this pod does not live, or will never come to work."""
    fate = reasons.fate(pod)
    if fate.state in (reasons.FINISHED, reasons.STUCK):
        return fate.reason
    waits = fate.state == reasons.WAITING
    deadline = situation.start_deadline_seconds
    patience = max(deadline - EARLY_SECONDS, deadline / 2)
    return fate.reason if waits and age(pod, situation.now) >= patience else None


def _is_litter(
    situation: Situation, pod: Mapping[str, Any], worker: model.WorkerRecord | None, why: str | None
) -> bool:
    """Whether the pod is to be deleted: what has not ended gets its grace, and a job its end."""
    if pod["metadata"].get("deletionTimestamp"):
        return False
    if _has_ended(pod):
        return situation.now - _ended_at(pod, situation.now) >= situation.ttl_seconds
    if worker is not None:
        return why is not None
    return age(pod, situation.now) >= LEFT_BEHIND_SECONDS


def _ended_at(pod: Mapping[str, Any], now: float) -> float:
    ends = [
        moment(status.get("state", {}).get("terminated", {}).get("finishedAt"), 0.0)
        for status in pod.get("status", {}).get("containerStatuses", [])
    ]
    return max([*ends, moment(pod["metadata"].get("creationTimestamp"), now)])


def _is_ours(situation: Situation, pod: Mapping[str, Any]) -> bool:
    return bool(pod["metadata"].get("labels", {}).get(STORE) == situation.store)


def _was_here(situation: Situation, worker: model.WorkerRecord) -> bool:
    """Whether a worker that is at work said that it is a pod of this cluster and namespace."""
    where = str(worker.metadata.get("place", ""))
    return worker.status != model.STARTING and where.startswith(
        place(situation.mark, situation.namespace, "sprat-")
    )
