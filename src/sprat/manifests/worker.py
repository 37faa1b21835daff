"""The pods of workers: a template for those that our launcher starts, and a Deployment for those
whose number somebody else sets, KEDA or an HPA.

Who leaves a Deployment is chosen without regard to what it does: it is told to, finishes its job
and leaves, if the job takes no longer than GRACE_SECONDS.
"""

from __future__ import annotations

from typing import Any

from sprat.core.errors import InvalidInput
from sprat.launchers.kubernetes.pods import before_stop
from sprat.manifests import names, pod
from sprat.manifests.plan import WORKER, ManifestPlan, labels, metadata, name

GRACE_SECONDS = 3600
STAY_SECONDS = 10 * 365 * 86400  # a Deployment would start again who left for want of work


def called(pool: str) -> str:
    """The name of what is there for a pool."""
    return names.derived(name(WORKER), pool)


def pools_of(plan: ManifestPlan) -> tuple[str, ...]:
    if not plan.pools:
        raise InvalidInput("--pool is missing: the pool (or several) that workers are for")
    return plan.pools


def template(plan: ManifestPlan) -> dict[str, Any]:
    """What a launcher merges its own into: the pool, the command and the reservation."""
    container = _container(plan)
    return {"spec": _pod({k: v for k, v in container.items() if v})}


def deployment(plan: ManifestPlan, pool: str) -> dict[str, Any]:
    """It names no number of replicas: applied again, it would undo what was scaled since."""
    mine = labels(WORKER, pool)
    inner = working_pod(plan, pool, idle_seconds=STAY_SECONDS)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(called(pool), WORKER, pool),
        "spec": {"selector": {"matchLabels": mine}, "template": pod.template(mine, inner)},
    }


def working_pod(plan: ManifestPlan, pool: str, *, idle_seconds: int, **more: Any) -> dict[str, Any]:
    """A pod that works for a pool until it has been idle for so long."""
    container = _container(
        plan,
        ["sprat", "work", pool, "--max-jobs", "0", "--idle", str(idle_seconds)],
        # The image's directory, not that of who applied the pool.
        env=[pod.variable("SPRAT_DIRECTORY", "."), pod.http_variable()],
        envFrom=[{"secretRef": {"name": plan.worker_secret}}],
        lifecycle={"preStop": {"exec": {"command": ["/bin/sh", "-c", before_stop(GRACE_SECONDS)]}}},
    )
    return _pod(container, terminationGracePeriodSeconds=GRACE_SECONDS, **more)


def _container(
    plan: ManifestPlan, command: list[str] | None = None, env: list[Any] | None = None, **more: Any
) -> dict[str, Any]:
    asked = pod.resources("100m", "128Mi")
    return pod.container(WORKER, plan.image, command or [], env=env or [], resources=asked, **more)


def _pod(container: dict[str, Any], **more: Any) -> dict[str, Any]:
    return pod.pod(container, account=name(WORKER), **more)
