"""How many pods a Deployment shall have, and which of them may go."""

from __future__ import annotations

from typing import Any

import pytest

from sprat.core.errors import InvalidInput
from sprat.core.model import WorkerRecord
from sprat.launchers.kubernetes.deployment import DeploymentChange, check_group, plan

MADE = "2027-01-15T08:00:00Z"
NOW = 1_800_000_000.0
Made = dict[str, Any]


def deployment(replicas: int, refusal: str | None = None) -> Made:
    failed = {"type": "ReplicaFailure", "status": "True", "message": refusal}
    conditions = [] if refusal is None else [failed]
    return {"spec": {"replicas": replicas}, "status": {"conditions": conditions}}


def pod(name: str, *, ready: bool = True, phase: str = "Running", **about: Any) -> Made:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "metadata": {"name": name, "creationTimestamp": MADE, **about},
        "status": {"phase": phase, "conditions": conditions},
    }


def at(place: str, claims: int = 1, status: str = "active") -> WorkerRecord:
    metadata = {"place": place}
    return WorkerRecord(worker_id=f"w-{place}", status=status, metadata=metadata, claims=claims)


def starting(n: int) -> list[WorkerRecord]:
    return [WorkerRecord(worker_id=f"s-{i}", status="starting") for i in range(n)]


def made(
    now: Made, pods: list[Made], workers: list[WorkerRecord], *, later: float = 0.0
) -> DeploymentChange:
    return plan(now, pods, workers, now=NOW + later, deadline=60.0)


def test_scale_is_the_workers_that_are_there_and_that_shall_come() -> None:
    found = made(deployment(1), [pod("a")], [at("a"), *starting(3)])
    assert (found.replicas, found.gone) == (4, {})


def test_pod_without_a_place_goes_when_it_is_not_ready() -> None:
    pods = [pod("a"), pod("b", ready=False)]
    found = made(deployment(2), pods, [at("a")])
    assert (found.replicas, found.costs) == (1, {"a": "1000", "b": "-100"})


def test_pod_that_still_looks_ready_is_waited_for() -> None:
    assert made(deployment(2), [pod("a"), pod("b")], [at("a")]).replicas == 2


def test_draining_worker_keeps_its_pod() -> None:
    assert made(deployment(1), [pod("a")], [at("a", status="terminating")]).replicas == 1


def test_idle_worker_costs_less_than_a_busy_one() -> None:
    pods = [pod("a"), pod("b"), pod("c", ready=False)]
    found = made(deployment(3), pods, [at("a", claims=0), at("b")])
    assert found.costs == {"a": "100", "b": "1000", "c": "-100"}


def test_scale_to_zero() -> None:
    pods = [pod("a", ready=False), pod("b", ready=False)]
    assert made(deployment(2), pods, []).replicas == 0


def test_place_for_a_pod_that_waits_needs_no_other_pod() -> None:
    found = made(deployment(2), [pod("a"), pod("b", ready=False)], [at("a"), *starting(1)])
    assert found.replicas == 2


def test_worker_elsewhere_and_pod_on_its_way_out_do_not_count() -> None:
    leaving = pod("b", deletionTimestamp=MADE)
    found = made(deployment(1), [pod("a"), leaving], [at("a"), at("b"), at("elsewhere")])
    assert found.replicas == 1


def test_quota_is_told_for_the_pods_that_it_forbids() -> None:
    refusal = 'pods "d-1" is forbidden: exceeded quota: few, limited: pods=2'
    pods = [pod("a"), pod("b")]
    found = made(deployment(5, refusal), pods, [at("a"), at("b"), *starting(3)])
    why = "exceeded quota: few, limited: pods=2"
    assert found.gone == {"s-0": why, "s-1": why, "s-2": why}
    assert found.replicas == 2


def test_image_that_cannot_be_pulled_is_told_for_as_many_as_wait_for_it() -> None:
    stuck = pod("b", ready=False, phase="Pending")
    state = {"waiting": {"reason": "ErrImagePull", "message": "no"}}
    stuck["status"]["containerStatuses"] = [{"name": "worker", "state": state}]
    found = made(deployment(3), [pod("a", ready=False), stuck], starting(3))
    assert found.gone == {"s-2": "ErrImagePull: no"}
    assert found.replicas == 2


def test_pod_that_does_not_start_has_until_the_deadline() -> None:
    pods = [pod("a", ready=False, phase="Pending")]
    assert made(deployment(1), pods, starting(1), later=59).gone == {}
    found = made(deployment(1), pods, starting(1), later=61)
    assert (list(found.gone), found.replicas) == (["s-0"], 0)


def test_evicted_worker_is_gone() -> None:
    evicted = pod("a", ready=False, phase="Failed")
    evicted["status"] |= {"reason": "Evicted", "message": "low on memory"}
    found = made(deployment(1), [evicted, pod("b", ready=False)], [at("a")])
    assert found.gone == {"w-a": "Evicted: low on memory"}


def test_places_of_a_group_that_the_pods_are_not_for_are_refused() -> None:
    gpu = WorkerRecord(worker_id="w", status="starting", capabilities=("gpu",))
    with pytest.raises(InvalidInput, match="for gpu, the Deployment's pods are for none: set"):
        check_group([gpu], None)
    with pytest.raises(InvalidInput, match="for no machine group, the Deployment's pods are for"):
        check_group(starting(1), "gpu")
    check_group([gpu], "gpu")
    check_group(starting(1), None)
