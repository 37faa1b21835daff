"""What a pod's status means for its worker: reasons, who is gone, what is cleared away."""

from __future__ import annotations

from typing import Any

import pytest

from sprat.core.model import WorkerRecord
from sprat.launchers.kubernetes import reasons
from sprat.launchers.kubernetes.names import name_of
from sprat.launchers.kubernetes.reconcile import Situation, judge

NOW = 1_800_000_000.0
MADE = "2027-01-15T08:00:00Z"  # the same moment
Pod = dict[str, Any]


def pod(
    status: Pod, worker_id: str = "w-1", *, store: str = "ours", made: str = MADE, **about: Any
) -> Pod:
    labels = {"sprat/worker": name_of(worker_id), "sprat/store": store}
    name = name_of(worker_id)
    return {
        "metadata": {"name": name, "labels": labels, "creationTimestamp": made, **about},
        "status": status,
    }


def waiting(reason: str, message: str = "") -> Pod:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "worker", "state": state}]}


def ended(code: int, reason: str = "Error", message: str = "", at: str = MADE) -> Pod:
    state = {"exitCode": code, "reason": reason, "message": message, "finishedAt": at}
    return {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": [{"name": "worker", "state": {"terminated": state}}],
    }


UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes are available: 1 Insufficient cpu.",
        }
    ],
}
EVICTED = {
    "phase": "Failed",
    "reason": "Evicted",
    "message": "The node was low on resource: memory. ",
}
RUNNING = {"phase": "Running"}

FATES = {
    "image": (
        waiting("ErrImagePull", 'rpc error: failed to resolve "x:1":\n not found'),
        "stuck",
        'ErrImagePull: rpc error: failed to resolve "x:1": not found',
    ),
    "back-off": (
        waiting("ImagePullBackOff", 'Back-off pulling image "x:1"'),
        "stuck",
        'ImagePullBackOff: Back-off pulling image "x:1"',
    ),
    "secret": (
        waiting("CreateContainerConfigError", 'secret "store" not found'),
        "stuck",
        'CreateContainerConfigError: secret "store" not found',
    ),
    "creating": (
        waiting("ContainerCreating"),
        "waiting",
        "its pod did not start: ContainerCreating",
    ),
    "no node": (
        UNSCHEDULABLE,
        "waiting",
        "no node takes its pod: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.",
    ),
    "new": ({}, "waiting", "its pod did not start"),
    "running": (RUNNING, "running", "its pod runs"),
    "crash loop": (
        {
            "phase": "Running",
            "containerStatuses": [
                {
                    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
                    "lastState": {
                        "terminated": {"exitCode": 2, "reason": "Error", "message": "sprat: no\n"}
                    },
                }
            ],
        },
        "stuck",
        "started again and again: its pod ended with exit code 2: sprat: no",
    ),
    "memory": (ended(137, "OOMKilled"), "finished", "OOMKilled (signal 9)"),
    "eviction": (EVICTED, "finished", "Evicted: The node was low on resource: memory."),
    "exit": (
        ended(2, message="one\ntwo\nthree\nfour\nfive\n\nsprat: no such pool\n"),
        "finished",
        "its pod ended with exit code 2: two | three | four | five | sprat: no such pool",
    ),
    "no program": (
        ended(128, "StartError", 'exec: "sprat": executable file not found in $PATH'),
        "finished",
        'StartError (exit code 128): exec: "sprat": executable file not found in $PATH',
    ),
    "end": (ended(0, "Completed"), "finished", "its pod ended (exit code 0)"),
    "preempted": (
        {
            "phase": "Failed",
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "PreemptionByScheduler",
                    "message": "preempting to accommodate a higher priority pod",
                }
            ],
        },
        "finished",
        "PreemptionByScheduler: preempting to accommodate a higher priority pod",
    ),
}


@pytest.mark.parametrize(("status", "state", "reason"), FATES.values(), ids=list(FATES))
def test_status_is_told_in_words(status: Pod, state: str, reason: str) -> None:
    found = reasons.fate(pod(status))
    assert (found.state, found.reason) == (state, reason)


def test_reason_is_bounded() -> None:
    found = reasons.fate(pod(ended(1, message="x" * 100_000 + " the end")))
    assert len(found.reason) < 700
    assert found.reason.endswith("the end")


def worker(worker_id: str = "w-1", status: str = "active", place: str = "") -> WorkerRecord:
    where = place or f"12345678/here/{name_of(worker_id)}"
    metadata = {} if status == "starting" else {"place": where}
    return WorkerRecord(worker_id=worker_id, status=status, metadata=metadata)


def situation(
    pods: list[Pod], workers: list[WorkerRecord], *, later: float = 0.0, ttl: float = 30.0
) -> Situation:
    return Situation(
        pods=pods,
        workers=workers,
        now=NOW + later,
        mark="12345678",
        namespace="here",
        store="ours",
        start_deadline_seconds=60.0,
        ttl_seconds=ttl,
    )


def test_running_worker_is_left_alone() -> None:
    found = judge(situation([pod(RUNNING)], [worker()], later=1e6))
    assert (found.gone, found.delete) == ({}, ())


def test_killed_worker_is_gone_and_its_pod_stays_for_a_while() -> None:
    pods = [pod(ended(137, "OOMKilled"))]
    found = judge(situation(pods, [worker()], later=10))
    assert (found.gone, found.delete) == ({"w-1": "OOMKilled (signal 9)"}, ())
    assert judge(situation(pods, [], later=31)).delete == ("sprat-w-1",)


def test_image_that_cannot_be_pulled_frees_its_slot_at_once() -> None:
    found = judge(situation([pod(waiting("ErrImagePull", "no"))], [worker(status="starting")]))
    assert (found.gone, found.delete) == ({"w-1": "ErrImagePull: no"}, ("sprat-w-1",))


def test_pod_that_no_node_takes_has_until_its_deadline() -> None:
    workers = [worker(status="starting")]
    assert not judge(situation([pod(UNSCHEDULABLE)], workers, later=50)).gone
    found = judge(situation([pod(UNSCHEDULABLE)], workers, later=59))
    assert "Insufficient cpu" in found.gone["w-1"]
    assert found.delete == ("sprat-w-1",)


def test_deleted_pod_is_missed_only_where_it_was() -> None:
    elsewhere = worker("w-2", place="87654321/here/sprat-w-2")
    by_hand = WorkerRecord(worker_id="w-3", status="active")
    coming = worker("w-4", status="starting")
    found = judge(situation([], [worker(), elsewhere, by_hand, coming]))
    assert list(found.gone) == ["w-1"]
    assert "its pod is gone" in found.gone["w-1"]


def test_pod_without_a_worker_may_be_newer_than_the_list_of_workers() -> None:
    assert not judge(situation([pod(RUNNING)], [], later=30)).delete
    assert judge(situation([pod(RUNNING)], [], later=130)).delete == ("sprat-w-1",)


def test_pod_of_another_store_or_on_its_way_out_is_left_alone() -> None:
    theirs = pod(ended(0, "Completed"), store="theirs")
    leaving = pod(RUNNING, "w-2", deletionTimestamp=MADE)
    assert not judge(situation([theirs, leaving], [], later=1000)).delete


def test_second_pod_of_a_job_counts() -> None:
    found = judge(situation([pod(RUNNING), pod(ended(1))], [worker()], later=100))
    assert (found.gone, found.delete) == ({}, ())
