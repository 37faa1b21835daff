"""Twenty checkers at once: one decision a version, and never more workers than allowed."""

from __future__ import annotations

import random

from processes import Together, at_once
from worlds import World

from sprat.core.model import Decision, WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.store import Store

CHECKERS = 20
ROUNDS = 8
MAX_WORKERS = 7


def decision(launch: int, max_workers: int = MAX_WORKERS) -> Decision:
    return Decision(
        pool="papers",
        policy="test",
        direction="up",
        current=0,
        desired=launch,
        reason="a race",
        launch=launch,
        max_workers=max_workers,
    )


def record_what_all_saw(place: int, together: Together, url: str) -> list[tuple[int, bool]]:
    """The version seen in each round, and whether this process' decision was recorded."""
    log: list[tuple[int, bool]] = []
    with open_store(url) as store:
        pool = store.pool("papers")
        for _ in range(ROUNDS):
            together()
            version = pool.observe().version
            together()
            log.append((version, pool.record(decision(1, 1000), version=version) is not None))
    return log


def test_one_decision_wins_a_version(shared: World, shared_url: str) -> None:
    logs = at_once(CHECKERS, record_what_all_saw, shared_url)
    pool = shared.open().pool("papers")
    for number in range(ROUNDS):
        assert {log[number][0] for log in logs} == {number}
        assert sum(log[number][1] for log in logs) == 1
    assert pool.observe().version == ROUNDS
    assert pool.observe().starting == ROUNDS
    assert [d.version for d in pool.decisions()] == list(range(ROUNDS, 0, -1))


def launch_until_full(place: int, together: Together, url: str) -> list[int]:
    """Launch without looking at how many there are; the fleet's size after each record."""
    chance = random.Random(place)
    sizes: list[int] = []
    with open_store(url) as store:
        pool = store.pool("papers")
        together()
        while True:
            seen = pool.observe()
            sizes.append(seen.starting + seen.active)
            if sizes[-1] >= MAX_WORKERS:
                return sizes
            for launch in (3, 1):  # three do not always fit, one does
                recorded = pool.record(decision(launch), version=seen.version)
                if recorded is not None:
                    break
            if recorded is not None and chance.random() < 0.5:
                come(store, recorded.launched)


def come(store: Store, launched: tuple[str, ...]) -> None:
    for worker_id in launched:
        store.workers.register(WorkerRegistration(worker_id=worker_id, reserved=True))


def test_fleet_never_exceeds_its_maximum(shared: World, shared_url: str) -> None:
    logs = at_once(CHECKERS, launch_until_full, shared_url)
    assert max(size for sizes in logs for size in sizes) == MAX_WORKERS
    pool = shared.open().pool("papers")
    fleet = [worker.worker_id for worker in pool.observe().workers]
    assert len(fleet) == MAX_WORKERS
    recorded = [worker_id for d in pool.decisions(limit=100) for worker_id in d.launched]
    assert sorted(recorded) == sorted(fleet)
