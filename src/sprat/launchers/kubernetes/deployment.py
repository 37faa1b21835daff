"""Workers as the pods of a Deployment of yours: only its scale is ours to set.

Any of its pods takes any place that a pass made (see seat.py), so what counts is how many there
are. Kubernetes chooses which pods go when the scale is lowered, so it is lowered only by as many as
have nothing to do and are not ready: those go first in every version. Where it heeds deletion
costs (1.22 and later) they say the same. Should it choose wrongly all the same, the pod drains.
"""

from __future__ import annotations

from sprat.core import model
from sprat.core.errors import InvalidInput
from sprat.core.record import Record
from sprat.launchers.kubernetes import reasons
from sprat.launchers.kubernetes.client import DEPLOYMENT, POD, SCALE, Refused
from sprat.launchers.kubernetes.reconcile import age
from sprat.worker.standby_worker import is_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from sprat.launchers.kubernetes.client import Cluster
    from sprat.launchers.kubernetes.options import Options

    Pods = Mapping[str, Mapping[str, Any]]

COST = "controller.kubernetes.io/pod-deletion-cost"
BUSY, IDLE, UNSEATED = "1000", "100", "-100"
TRIES = 5  # somebody else changed the Deployment meanwhile; then it is left to the next pass


class DeploymentChange(Record):
    """What is to be done with a Deployment."""

    replicas: int
    costs: Mapping[str, str]  # pod: what it costs to delete it
    gone: Mapping[str, str]  # worker id: why


def fit(
    cluster: Cluster,
    options: Options,
    live: Callable[[], Sequence[model.WorkerRecord]],
    *,
    now: float,
    deadline: float,
) -> dict[str, str]:
    """Set the scale to the workers that there are and that shall come; who will not, and why."""
    name = str(options.deployment)
    for _ in range(TRIES):
        found = cluster.get(DEPLOYMENT, name)
        workers = live()  # after the Deployment: whoever reserves more from now on changes it too
        pods = cluster.list(POD, labels=found["spec"]["selector"].get("matchLabels", {}))
        mine = [worker for worker in workers if is_for(worker, options.group)]
        made = plan(found, pods, mine, now=now, deadline=deadline)
        try:
            _carry_out(cluster, found, pods, made)
        except Refused as refusal:
            if refusal.code == 409:
                continue
            raise
        return dict(made.gone)
    return {}


def check_group(launched: Sequence[model.WorkerRecord], group: str | None) -> None:
    """Refuse places that no pod of the Deployment would take."""
    for worker in launched:
        if not is_for(worker, group):
            meant = ", ".join(worker.capabilities) or "no machine group"
            raise InvalidInput(
                f"these workers are for {meant}, the Deployment's pods are for "
                f"{group or 'none'}: set launcher_options.group, and --group of its pods"
            )


def plan(
    deployment: Mapping[str, Any],
    pods: Sequence[Mapping[str, Any]],
    workers: Sequence[model.WorkerRecord],
    *,
    now: float,
    deadline: float,
) -> DeploymentChange:
    there = {_name(pod): pod for pod in pods if _counts(pod)}
    at_work = {_place(w): w for w in workers if w.status != model.STARTING}
    seated = {name: at_work[name] for name in there if name in at_work}
    unseated = {name: pod for name, pod in there.items() if name not in seated}
    gone = {
        at_work[name].worker_id: reasons.fate(pod).reason
        for name, pod in ((_name(pod), pod) for pod in pods)
        if name in at_work and reasons.fate(pod).state == reasons.FINISHED
    }
    starting = [w for w in workers if w.status == model.STARTING]
    replicas = int(deployment["spec"].get("replicas", 1))
    missing = max(0, replicas - len(there))
    troubles = _troubles(deployment, unseated, missing, now=now, deadline=deadline)
    hopeful = len(unseated) + missing - len(troubles)
    hopeless = min(len(troubles), max(0, len(starting) - hopeful))
    if hopeless:
        last = starting[-hopeless:]
        gone |= {w.worker_id: why for w, why in zip(last, troubles, strict=False)}
    wanted = len(starting) - hopeless + len(seated)
    removable = missing + sum(not _is_ready(pod) for pod in unseated.values())
    return DeploymentChange(
        replicas=max(wanted, replicas - removable),
        costs={**dict.fromkeys(unseated, UNSEATED), **{n: _cost(w) for n, w in seated.items()}},
        gone=gone,
    )


def _troubles(
    deployment: Mapping[str, Any], unseated: Pods, missing: int, *, now: float, deadline: float
) -> list[str]:
    """Why pods do not come, a reason for each of them."""
    found = []
    for pod in unseated.values():
        fate = reasons.fate(pod)
        overdue = fate.state == reasons.WAITING and age(pod, now) >= deadline
        if fate.state == reasons.STUCK or overdue:
            found.append(fate.reason)
    for condition in deployment.get("status", {}).get("conditions", []):
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            said = " ".join(str(condition.get("message", "no pod may be made")).split())
            found += [said.partition(" is forbidden: ")[2] or said] * missing
    return found


def _carry_out(
    cluster: Cluster,
    deployment: Mapping[str, Any],
    pods: Sequence[Mapping[str, Any]],
    made: DeploymentChange,
) -> None:
    now = int(deployment["spec"].get("replicas", 1))
    if made.replicas == now:
        return
    if made.replicas < now:
        for pod in pods:
            _set_cost(cluster, pod, made.costs.get(_name(pod)))
    version = deployment["metadata"]["resourceVersion"]
    change = {"metadata": {"resourceVersion": version}, "spec": {"replicas": made.replicas}}
    cluster.patch(SCALE, _name(deployment), change)


def _set_cost(cluster: Cluster, pod: Mapping[str, Any], cost: str | None) -> None:
    has = pod["metadata"].get("annotations", {}).get(COST)
    if cost is None or cost == has:
        return
    try:
        cluster.patch(POD, _name(pod), {"metadata": {"annotations": {COST: cost}}})
    except Refused as refusal:
        if refusal.code != 404:  # gone meanwhile
            raise


def _counts(pod: Mapping[str, Any]) -> bool:
    """Whether the Deployment counts it: it has not ended and is not on its way out."""
    ended = reasons.fate(pod).state == reasons.FINISHED
    return not ended and not pod["metadata"].get("deletionTimestamp")


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _cost(worker: model.WorkerRecord) -> str:
    return BUSY if worker.claims else IDLE


def _name(made: Mapping[str, Any]) -> str:
    return str(made["metadata"]["name"])


def _place(worker: model.WorkerRecord) -> str:
    return str(worker.metadata.get("place", "")).rpartition("/")[2]
