"""Workers as the pods of a Deployment of yours: only its scale is ours to set.

Any of its pods serves any reservation (see standby_worker.py), so only their number counts.
Kubernetes chooses which pods go when the scale is lowered, so it is lowered only by as many as
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
TRIES = 5  # another process changed the Deployment meanwhile; then the next pass does it


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
        deployment = cluster.get(DEPLOYMENT, name)
        workers = live()  # read after the Deployment: a pass that reserves more changes it
        pods = cluster.list(POD, labels=deployment["spec"]["selector"].get("matchLabels", {}))
        mine = [worker for worker in workers if is_for(worker, options.group)]
        change = plan(deployment, pods, mine, now=now, deadline=deadline)
        try:
            _carry_out(cluster, deployment, pods, change)
        except Refused as refusal:
            if refusal.code == 409:
                continue
            raise
        return dict(change.gone)
    return {}


def check_group(launched: Sequence[model.WorkerRecord], group: str | None) -> None:
    """Refuse places that no pod of the Deployment would take."""
    for worker in launched:
        if not is_for(worker, group):
            groups = ", ".join(worker.capabilities) or "no machine group"
            raise InvalidInput(
                f"these workers are for {groups}, the Deployment's pods are for "
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
    existing = {_name(pod): pod for pod in pods if _counts(pod)}
    at_work = {_place(w): w for w in workers if w.status != model.STARTING}
    seated = {name: at_work[name] for name in existing if name in at_work}
    unseated = {name: pod for name, pod in existing.items() if name not in seated}
    gone = {
        at_work[name].worker_id: reasons.fate(pod).reason
        for name, pod in ((_name(pod), pod) for pod in pods)
        if name in at_work and reasons.fate(pod).state == reasons.FINISHED
    }
    starting = [w for w in workers if w.status == model.STARTING]
    replicas = int(deployment["spec"].get("replicas", 1))
    missing = max(0, replicas - len(existing))
    troubles = _troubles(deployment, unseated, missing, now=now, deadline=deadline)
    hopeful = len(unseated) + missing - len(troubles)
    hopeless = min(len(troubles), max(0, len(starting) - hopeful))
    if hopeless:
        last = starting[-hopeless:]
        gone |= {w.worker_id: why for w, why in zip(last, troubles, strict=False)}
    required = len(starting) - hopeless + len(seated)
    removable = missing + sum(not _is_ready(pod) for pod in unseated.values())
    return DeploymentChange(
        replicas=max(required, replicas - removable),
        costs={**dict.fromkeys(unseated, UNSEATED), **{n: _cost(w) for n, w in seated.items()}},
        gone=gone,
    )


def _troubles(
    deployment: Mapping[str, Any], unseated: Pods, missing: int, *, now: float, deadline: float
) -> list[str]:
    """Why pods do not come, a reason for each of them."""
    troubles = []
    for pod in unseated.values():
        fate = reasons.fate(pod)
        overdue = fate.state == reasons.WAITING and age(pod, now) >= deadline
        if fate.state == reasons.STUCK or overdue:
            troubles.append(fate.reason)
    for condition in deployment.get("status", {}).get("conditions", []):
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            message = " ".join(str(condition.get("message", "no pod may be made")).split())
            troubles += [message.partition(" is forbidden: ")[2] or message] * missing
    return troubles


def _carry_out(
    cluster: Cluster,
    deployment: Mapping[str, Any],
    pods: Sequence[Mapping[str, Any]],
    change: DeploymentChange,
) -> None:
    now = int(deployment["spec"].get("replicas", 1))
    if change.replicas == now:
        return
    if change.replicas < now:
        for pod in pods:
            _set_cost(cluster, pod, change.costs.get(_name(pod)))
    version = deployment["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "spec": {"replicas": change.replicas}}
    cluster.patch(SCALE, _name(deployment), patch)


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


def _name(resource: Mapping[str, Any]) -> str:
    return str(resource["metadata"]["name"])


def _place(worker: model.WorkerRecord) -> str:
    return str(worker.metadata.get("place", "")).rpartition("/")[2]
