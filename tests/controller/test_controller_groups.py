"""Machine groups: each has its own work, and the work of nobody in particular is counted once."""

from __future__ import annotations

import pytest
from controllers import Place, Program, eventually

from sprat.core.model import PoolSettings, WorkerRegistration
from sprat.fleet import policy_input
from sprat.store.store import Store

BOTH = """\
store: {url}
launcher: process
lease_seconds: 5
overrides: {{max_replicas: 8, poll_interval_seconds: 0.5, scale_down_delay_seconds: 3600}}
scale_sets:
- {{pool: papers, machine_group: gpu}}
- {{pool: papers, machine_group: cpu}}
"""


def launched(place: Place, group: str) -> int:
    return len([one for one in place.workers() if one.capabilities == (group,)])


def begin(place: Place, group: str) -> Program:
    place.config(
        f"store: {place.url}\npool: papers\nmachine_group: {group}\n",
        max_replicas=8,
        scale_down_delay_seconds=3600,
    )
    controller = place.controller()
    controller.until(f"papers/{group}: ")
    return controller


def test_a_group_that_takes_any_counts_the_work_without_a_group(store: Store) -> None:
    pool, settings = store.pool("papers"), PoolSettings(policy="pending-per-worker")
    for group in ("gpu", "cpu"):
        registration = WorkerRegistration(
            worker_id=group, pool_id="papers", capabilities=(group,), lease_seconds=80_000.0
        )
        store.workers.register(registration)
    pool.push_many(range(3))
    pool.push_many(range(2), group="gpu")
    pool.push("later", delay=60)
    pool.claim("cpu")
    alone = policy_input.observe(store, "papers", settings, "gpu")
    assert (alone.counts.ready, alone.counts.delayed) == (2, 0)
    seen = policy_input.observe(store, "papers", settings, "gpu", takes_any=True)
    assert (seen.counts.ready, seen.counts.delayed, seen.counts.claimed) == (4, 1, 0)
    assert [worker.worker_id for worker in seen.workers] == ["gpu"]
    assert seen.next_due_seconds == pytest.approx(60, abs=5)
    assert seen.oldest_ready_seconds is not None
    pool.claim("gpu")
    seen = policy_input.observe(store, "papers", settings, "gpu", takes_any=True)
    assert seen.counts.claimed == 1, "what our own workers hold"


def test_two_groups_do_not_both_launch_for_the_work_of_anybody(place: Place) -> None:
    """Two controllers of two groups: six items without a group bring six workers, not twelve."""
    place.configure(handler="jobs:until_told")
    go = place.path / "go"
    first, second = begin(place, "gpu"), begin(place, "cpu")
    place.push(6, go=str(go))
    eventually(lambda: place.pool.counts().claimed == 6, place.pool.counts)
    assert (launched(place, "gpu"), launched(place, "cpu")) == (6, 0)
    place.push(2, group="cpu", go=str(go))
    eventually(lambda: place.pool.counts().claimed == 8, place.pool.counts)
    assert (launched(place, "gpu"), launched(place, "cpu")) == (6, 2)
    go.touch()
    place.until_done(8)
    first.kill()
    place.store.pool("papers").configure(handler="jobs:nap")
    eventually(lambda: not [w for w in place.workers("active") if w.claims])
    for worker in place.workers("active"):
        place.store.workers.update_status(worker, "terminating")
    eventually(lambda: not place.workers("starting", "active", "terminating"), place.workers)
    place.push(3)
    place.until_done(11)
    assert launched(place, "cpu") > 2, "who is left takes over the duty when the lease has ended"
    assert second.stop() == 0


def test_one_controller_for_two_groups(place: Place) -> None:
    path = place.path / "worker-controller-config.yaml"
    path.write_text(BOTH.format(url=place.url))
    controller = place.controller()
    controller.until("papers/gpu: ")
    controller.until("papers/cpu: ")
    place.push(2, group="gpu")
    place.push(2, group="cpu")
    place.push(2)
    place.until_done(6)
    assert launched(place, "gpu") >= 1
    assert launched(place, "cpu") >= 1
    assert launched(place, "gpu") + launched(place, "cpu") <= 6
    assert controller.stop() == 0
