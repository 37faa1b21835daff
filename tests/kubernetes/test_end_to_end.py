"""200 jobs go through the orchestrator, from no pod to pods and back, whatever happens to them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from clusters import Cluster, Room, until
from lightkube.models.core_v1 import ResourceQuotaSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Pod, ResourceQuota
from systems import MAX_WORKERS, POOL, System

from sprat.core import model

pytestmark = pytest.mark.timeout(400)

JOBS = 200
SECONDS = 0.1  # of each job
LONG_SECONDS = 5.0


def delete(room: Room, pod: str) -> None:
    """As `kubectl delete --force --grace-period=0` does."""
    room.client.delete(Pod, pod, namespace=room.name, grace_period=0)


def pod_of(system: System, item_id: str) -> str:
    """Where the job runs, as soon as it does."""
    holder = until(lambda: system.pool.get(item_id).claimed_by, "a worker for the job")
    return str(system.store.workers.get(holder).metadata["place"]).rpartition("/")[2]


def test_pods_come_do_all_the_work_and_go(system: System) -> None:
    system.start_controller()
    assert system.room.pods() == []
    ids = system.push(JOBS, seconds=SECONDS)
    system.until_done(JOBS)
    system.until_empty()
    system.check_each_done_once(ids)
    assert {item.attempts for item in system.items()} == {1}
    assert len({item.result["pod"] for item in system.items()}) > 1
    ids += system.push(3)  # and once more from zero
    system.until_done(JOBS + 3)
    system.until_empty()
    system.check_each_done_once(ids)


@pytest.mark.parametrize("end", [Room.kill, delete], ids=["killed", "deleted"])
def test_job_of_a_pod_that_ends_is_done_by_another(
    system: System, room: Room, end: Callable[[Room, str], None]
) -> None:
    system.start_controller()
    (long,) = system.push(1, seconds=LONG_SECONDS)
    ids = system.push(JOBS, seconds=SECONDS)
    first = pod_of(system, long)
    end(room, first)
    system.until_done(JOBS + 1)
    system.until_empty()
    system.check_each_done_once([long, *ids])
    again = system.pool.get(long)
    assert again.result["pod"].rpartition("/")[2] != first
    assert again.attempts + again.given_back == 2
    assert {item.attempts for item in system.items() if item.id != long} == {1}


@pytest.mark.alone
def test_restart_of_the_api_server_loses_nothing(cluster: Cluster, system: System) -> None:
    system.start_controller()
    ids = system.push(JOBS // 2, seconds=SECONDS)
    until(lambda: system.pool.counts().done, "a done job")
    cluster.restart_api_server(lambda: ids.extend(system.push(JOBS // 2, seconds=SECONDS)))
    system.until_done(JOBS)
    system.until_empty()
    system.check_each_done_once(ids)
    assert {item.attempts for item in system.items()} == {1}


def test_quota_is_told_and_the_work_is_done_all_the_same(system: System, room: Room) -> None:
    allowed = MAX_WORKERS // 2
    about = ObjectMeta(name="few", namespace=room.name)
    spec = ResourceQuotaSpec(hard={"pods": str(allowed)})
    room.client.create(ResourceQuota(metadata=about, spec=spec))
    system.start_controller()
    ids = system.push(JOBS, seconds=SECONDS)
    until(lambda: "exceeded quota" in system.run("explain", POOL), "the reason in `sprat explain`")
    assert 0 < len(room.pods()) <= allowed
    system.until_done(JOBS)
    system.until_empty()
    system.check_each_done_once(ids)


def test_of_two_controllers_one_may_die_and_the_maximum_holds(system: System, room: Room) -> None:
    for name in ("first", "second"):
        system.start_controller(name)
    ids = system.push(JOBS, seconds=SECONDS)
    most = {"workers": 0, "pods": 0}

    def look() -> int:
        most["workers"] = max(most["workers"], system.live())
        most["pods"] = max(most["pods"], len(room.pods()))
        return system.pool.counts().done

    until(lambda: look() >= JOBS // 4, "the first jobs")
    system.kill("first")
    ids += system.push(JOBS, seconds=SECONDS)
    until(lambda: look() == 2 * JOBS, "the end of the work")
    system.until_empty()
    system.check_each_done_once(ids)
    assert most["workers"] <= MAX_WORKERS
    assert 1 < most["pods"] <= MAX_WORKERS
    assert not system.store.workers.list(status=model.LOST, pool_id=POOL)
