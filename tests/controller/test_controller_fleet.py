"""A controller, an orchestrator and workers: from nothing to a fleet, and back to nothing."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path

from controllers import Place, ask, eventually
from servers import postgres

N = 200


def assert_each_ran_once(place: Place, count: int) -> None:
    assert place.pool.counts().done == count
    assert place.runs() == {str(n): 1 for n in range(count)}


def most_at_once(place: Place) -> int:
    return max(len(one.launched) + one.current for one in place.pool.decisions(limit=100))


def test_from_zero_to_a_fleet_and_back_to_zero(place: Place) -> None:
    place.serve()
    place.config(max_replicas=4)
    controller = place.controller("--listen", "127.0.0.1:0")
    port = int(controller.until(r"listening on http://127.0.0.1:(\d+)")[1])
    eventually(lambda: ask(port, "/readyz")[0] == 200)
    assert place.workers() == []
    place.push(N, seconds=0.02)
    place.until_done(N)
    eventually(lambda: not place.workers("starting", "active", "terminating"), place.workers)
    assert_each_ran_once(place, N)
    fleet = place.workers()
    assert {worker.capabilities for worker in fleet} == {("gpu",)}
    assert most_at_once(place) <= 4
    figures = ask(port, "/metrics")[1]
    assert f'workers_started_total{{pool="papers",group="gpu"}} {len(fleet)}' in figures
    first = len(fleet)
    place.push(3)
    place.until_done(N + 3)
    assert len(place.workers()) > first, "and back again from zero"
    assert controller.stop() == 0


def test_the_orchestrator_goes_away_for_a_while(place: Place) -> None:
    server = place.serve()
    place.config(max_replicas=3)
    controller = place.controller()
    place.push(60, seconds=0.05)
    eventually(lambda: place.pool.counts().done >= 5, place.pool.counts)
    server.kill()
    controller.until("the pass failed: no answer from")
    place.serve()
    place.until_done(60)
    eventually(lambda: not place.workers("starting", "active", "terminating"), place.workers)
    assert controller.stop() == 0
    counts = place.pool.counts()
    assert (counts.done, counts.poisoned, counts.pending) == (60, 0, 0)


def test_a_store_without_an_orchestrator(tmp_path: Path) -> None:
    postgres.require()
    url = postgres.shared_url()
    postgres.empty(url)
    place = Place(tmp_path, url)
    try:
        place.config(f"store: {json.dumps(place.url)}\n", max_replicas=3)
        controller = place.controller()
        place.push(50)
        place.until_done(50)
        eventually(lambda: not place.workers("starting", "active", "terminating"))
        assert_each_ran_once(place, 50)
        assert controller.stop() == 0
    finally:
        place.close()


def test_pushes_and_nests_leave_scaling_to_the_controller(place: Place) -> None:
    """The pool's own settings allow ten workers, and a pass after each push."""
    place.configure(start_on_push=True, max_workers=10, max_jobs=1)
    place.config(f"store: {place.url}\nalgorithm: queue_depth\n", max_replicas=2)
    controller = place.controller()
    controller.until("papers: ")
    place.push(12, seconds=0.05)
    place.until_done(12)
    assert most_at_once(place) <= 2
    assert {one.policy for one in place.pool.decisions(limit=100)} == {"pending-per-worker"}
    controller.stop()


def test_workers_stay_for_the_delay_and_the_minimum(place: Place) -> None:
    """The pool's own rule would send them away after half a second without work."""
    place.config(f"store: {place.url}\nalgorithm: queue_depth\n", min_replicas=2)
    place.controller()
    eventually(lambda: len(place.workers("active")) == 2, place.workers)
    first = {worker.worker_id for worker in place.workers()}
    beats = [worker.last_heartbeat for worker in place.workers("active")]
    eventually(lambda: all(w.last_heartbeat > max(beats) + 2 for w in place.workers("active")))
    assert {worker.worker_id for worker in place.workers()} == first, "nobody came or went"


def test_code_that_is_elsewhere_on_this_machine_is_found(place: Place) -> None:
    place.configure(directory="/nowhere/at/all")
    place.config(f"store: {place.url}\n", max_replicas=1)
    place.controller(SPRAT_DIRECTORY=".")
    place.push(2)
    place.until_done(2)


def test_sizes_that_change_all_the_time_interrupt_nobody(place: Place) -> None:
    """The orchestrator's limits go up and down in the middle of the load."""
    place.serve()
    top = f"orchestrator_url: {place.here}\ntenant_id: acme\nmachine_group: gpu\n"
    place.config(f"{top}config_ttl_seconds: 0.1\n", scale_down_delay_seconds=0)
    place.controller()
    place.push(100, seconds=0.05)
    sizes = cycle((6, 1, 4, 2))
    while place.pool.counts().done < 100:
        config = {"max_replicas": next(sizes)}
        assert ask(place.port, "/scale-sets/acme/gpu/config", "PUT", config)[0] == 200
        before = len(place.pool.decisions(limit=100))
        eventually(
            lambda before=before: (  # type: ignore[misc]
                place.pool.counts().done == 100 or len(place.pool.decisions(limit=100)) > before
            )
        )
    assert_each_ran_once(place, 100)
    assert sum(len(one.drained) for one in place.pool.decisions(limit=100)) > 0
    assert all(item.given_back == 0 for item in place.pool.items("done", limit=100))
