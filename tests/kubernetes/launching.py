"""A pool whose workers are pods, and scaling passes over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusters import Room, until
from lightkube.models.core_v1 import ResourceQuotaSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Pod, ResourceQuota
from systems import POOL, System

from sprat.core.errors import LaunchFailed
from sprat.core.model import LIVE, WorkerRecord
from sprat.fleet import checker

PATIENCE = 240.0


def choose(system: System, **options: Any) -> None:
    """Change some of the launcher's options; None takes one away."""
    now = {**system.pool.state().settings.launcher_options, **options}
    system.pool.configure(launcher_options={k: v for k, v in now.items() if v is not None})


def push(system: System, n: int, seconds: float = 0.0) -> list[str]:
    return system.pool.push_many([{"number": i, "seconds": seconds} for i in range(n)])


def passes_until(system: System, condition: Callable[[], Any], what: str) -> Any:
    """Run scaling passes until it is so; one that can start nobody is followed by the next."""

    def once() -> Any:
        try:
            checker.check(system.store, POOL)
        except LaunchFailed:
            pass
        return condition()

    return until(once, what, within=PATIENCE)


def until_done(system: System, n: int) -> None:
    passes_until(system, lambda: system.pool.counts().done == n, "the end of the work")


def until_cleared(system: System) -> None:
    passes_until(system, lambda: not pods(system), "the end of the pods")


def until_at_work(system: System, item_id: str) -> WorkerRecord:
    """The worker that runs this job, once the cluster knows that its pod runs: a kubelet of 1.20
    gives one that is deleted before that no grace."""

    def at_work() -> WorkerRecord | None:
        holder = system.pool.get(item_id).claimed_by
        return None if holder is None else system.store.workers.get(holder)

    found: WorkerRecord = passes_until(system, at_work, "the worker of the job")
    until(lambda: phase(system, pod_of(found)) == "Running", "its pod")
    return found


def phase(system: System, pod: str) -> str | None:
    status = system.room.client.get(Pod, pod, namespace=system.room.name).status
    return status.phase if status else None


def pod_of(worker: WorkerRecord) -> str:
    return str(worker.metadata["place"]).rpartition("/")[2]


def pods(system: System) -> list[Pod]:
    """All that there are, also those that have ended."""
    return list(system.room.client.list(Pod, namespace=system.room.name))


def live(system: System) -> list[WorkerRecord]:
    return system.store.workers.list(status=LIVE, pool_id=POOL)


def lost(system: System) -> list[WorkerRecord]:
    return system.store.workers.list(status="lost", pool_id=POOL)


def given_up(system: System) -> list[WorkerRecord]:
    """Launches that did not come to work, with the reason of each."""
    return [w for w in system.store.workers.list(pool_id=POOL) if w.pid is None and w.reason]


def refused(system: System) -> list[WorkerRecord]:
    """Launches that the quota of `allow_pods` forbade."""
    return [w for w in given_up(system) if "exceeded quota: few" in str(w.reason)]


def allow_pods(room: Room, n: int) -> None:
    """A quota of so many."""
    about = ObjectMeta(name="few", namespace=room.name)
    room.client.create(ResourceQuota(metadata=about, spec=ResourceQuotaSpec(hard={"pods": str(n)})))
    until(
        lambda: room.client.get(ResourceQuota, "few", namespace=room.name).status.hard,
        "the quota",
    )
