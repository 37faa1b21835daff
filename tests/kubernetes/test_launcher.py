"""Workers as single pods and as Jobs, on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import IMAGE, Room, until
from launching import (
    allow_pods,
    choose,
    given_up,
    live,
    lost,
    passes_until,
    pod_of,
    push,
    refused,
    until_at_work,
    until_cleared,
    until_done,
)
from lightkube.resources.core_v1 import Pod
from systems import POOL, System

from sprat.fleet import checker
from sprat.launchers.kubernetes.launcher import KubernetesLauncher

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(params=["pod", "job"])
def system(request: pytest.FixtureRequest, tmp_path: Path, room: Room) -> Iterator[System]:
    made = System(tmp_path, room, max_workers=4)
    choose(made, mode=request.param)
    yield made
    made.close()


def test_pods_come_do_the_work_and_are_cleared_away(system: System) -> None:
    push(system, 12, 0.2)
    until_done(system, 12)
    until_cleared(system)
    workers = system.store.workers.list(pool_id=POOL)
    assert 1 < len(workers) <= 4
    assert {worker.status for worker in workers} == {"terminated"}
    assert all(f"/{system.room.name}/sprat-w-" in str(w.metadata["place"]) for w in workers)


def test_repeated_launch_is_no_second_pod(system: System) -> None:
    push(system, 2)
    settings = system.pool.state().settings
    ids = checker.decide(system.store, POOL, settings).spawned_ids
    for _ in range(3):
        KubernetesLauncher().launch(system.store.url, POOL, settings, ids)
    until_done(system, 2)
    assert len(system.store.workers.list(pool_id=POOL)) == len(ids) == 2
    until_cleared(system)


def test_job_of_a_pod_that_is_killed_runs_again(system: System) -> None:
    system.pool.configure(heartbeat_seconds=300.0)  # no lease ends in this test
    # Longer than a kubelet may take to kill the container of a pod that is gone from the API.
    item_id = system.pool.push({"number": 0, "first_seconds": 250.0})
    first = until_at_work(system, item_id)
    system.room.client.delete(Pod, pod_of(first), namespace=system.room.name, grace_period=0)
    until_done(system, 1)
    assert system.pool.get(item_id).attempts == 2
    (gone,) = lost(system)
    assert gone.worker_id == first.worker_id
    assert "its pod is gone" in str(gone.reason) or "its pod ended" in str(gone.reason)


def test_deleted_pod_finishes_its_job_first(system: System) -> None:
    (item_id,) = push(system, 1, 8.0)
    worker = until_at_work(system, item_id)
    system.room.client.delete(Pod, pod_of(worker), namespace=system.room.name)
    until(lambda: system.pool.get(item_id).status == "done", "the end of the job")
    assert system.pool.get(item_id).attempts == 1
    until(lambda: not live(system), "the end of its worker")


def test_job_that_outlasts_the_grace_is_handed_back_uncharged(system: System) -> None:
    choose(system, grace_seconds=20)
    (item_id,) = push(system, 1, 3600.0)
    worker = until_at_work(system, item_id)
    system.room.client.delete(Pod, pod_of(worker), namespace=system.room.name)
    until(lambda: system.pool.get(item_id).status == "pending", "the job in the queue again")
    item = system.pool.get(item_id)
    assert (item.attempts, item.given_back) == (0, 1)
    system.pool.cancel(item_id)


@pytest.mark.parametrize("policy", ["Never", "IfNotPresent"])
def test_image_that_cannot_be_pulled_is_told_and_frees_the_slots(
    system: System, policy: str
) -> None:
    choose(system, image="127.0.0.1:1/nothing:1", image_pull_policy=policy)
    push(system, 2)
    checker.check(system.store, POOL)
    passes_until(system, lambda: len(given_up(system)) >= 2, "the reason")
    reasons = {str(worker.reason) for worker in given_up(system)}
    assert any("Image" in reason and "127.0.0.1:1/nothing:1" in reason for reason in reasons)
    choose(system, image=IMAGE, image_pull_policy="Never")
    until_done(system, 2)


def test_pod_that_no_node_takes_is_told_at_its_deadline(system: System) -> None:
    choose(system, cpu=1000)
    system.pool.configure(start_deadline_seconds=10.0)
    (item_id,) = push(system, 1)
    (worker,) = passes_until(system, lambda: given_up(system), "the reason")
    assert "no node takes its pod: Unschedulable" in str(worker.reason)
    assert "cpu" in str(worker.reason)
    system.pool.cancel(item_id)
    until_cleared(system)


def test_quota_leaves_the_others_at_work(system: System) -> None:
    allow_pods(system.room, 2)
    push(system, 24, 1.0)
    until_done(system, 24)
    assert refused(system)
    assert all(item.attempts == 1 for item in system.pool.items(limit=100))


def test_missing_secret_is_told(system: System) -> None:
    choose(system, secret="absent")
    push(system, 1)
    (worker,) = passes_until(system, lambda: given_up(system), "the reason")
    assert 'CreateContainerConfigError: secret "absent" not found' in str(worker.reason)


def test_what_the_worker_printed_before_it_failed_is_told(system: System) -> None:
    system.pool.configure(handler="nowhere:run")
    push(system, 1)
    (worker,) = passes_until(system, lambda: given_up(system), "the reason")
    assert "exit code 2" in str(worker.reason)
    assert "the handler nowhere:run cannot be imported" in str(worker.reason)


def test_worker_that_takes_too_much_memory_is_told(system: System) -> None:
    # The lease must not end before the kubelet has said what happened.
    system.pool.configure(handler="os:urandom", isolation="none", heartbeat_seconds=60)
    choose(system, memory_limit="100Mi")
    system.pool.push(500_000_000, max_retries=1)
    (worker,) = passes_until(system, lambda: lost(system), "the reason")
    assert "OOMKilled" in str(worker.reason)
    assert system.pool.counts().poisoned == 1


def test_scale_down_interrupts_no_job(system: System) -> None:
    ids = push(system, 60, 0.5)
    passes_until(system, lambda: len(system.store.workers.list(status="active")) == 4, "four")
    system.pool.configure(max_workers=1)
    until_done(system, 60)
    drained = {w for made in system.pool.decisions(limit=1000) for w in made.drained}
    assert len(drained) >= 3
    assert all(system.pool.get(item_id).attempts == 1 for item_id in ids)
    assert not lost(system)
