"""A store that was away: live workers are not taken for dead, dead ones not kept for ever."""

from __future__ import annotations

import os
import select
from collections.abc import Callable

import pytest
from worlds import World

from sprat.core import model
from sprat.core.leases import MOST_RENEWALS
from sprat.core.model import WorkerRecord, WorkItem
from sprat.store.backend import ClaimRef, WorkerRef
from sprat.store.pool import WorkPool
from sprat.store.store import Store

LEASE = 1000.0
OUTAGE = 800.0  # more than three quarters of a lease
QUIET = 400.0  # less, but more than a quarter


@pytest.fixture
def away(world: World, store: Store) -> Callable[[float], None]:
    """Lets time pass while nothing reaches the store."""
    return world.outage


@pytest.fixture
def live(enrol: Callable[..., WorkerRecord]) -> WorkerRecord:
    return enrol("w1", lease_seconds=LEASE, pool_id="papers")


def must_claim(pool: WorkPool, worker: str = "w1") -> WorkItem:
    item = pool.claim(worker)
    assert item is not None
    return item


def lease_of(store: Store, worker_id: str = "w1") -> tuple[float, int]:
    """What is left of the lease, and how often it was renewed."""
    worker = store.workers.get(worker_id)
    assert worker is not None
    return worker.lease_until - store.pool("papers").observe().now, worker.renewals


def reserve(store: Store) -> str:
    pool = store.pool("papers")
    recorded = pool.record(
        model.Decision(
            pool="papers",
            policy="test",
            direction="up",
            current=0,
            desired=1,
            reason="a test",
            launch=1,
            max_workers=5,
            start_deadline_seconds=LEASE,
        ),
        version=pool.observe().version,
    )
    assert recorded is not None
    return recorded.launched[0]


# -- renewals --------------------------------------------------------------------------------------


def test_keeping_no_worker_alive_is_a_sign_that_the_store_works(
    store: Store, live: WorkerRecord, away: Callable[[float], None]
) -> None:
    away(OUTAGE)
    assert store.backend.keep_alive([]) == 0
    assert lease_of(store) == (pytest.approx(LEASE, abs=60.0), 1)


def test_worker_is_not_lost_by_an_outage(
    store: Store, live: WorkerRecord, away: Callable[[float], None]
) -> None:
    away(100 * LEASE)
    assert store.workers.reap().workers == ()
    left, renewals = lease_of(store)
    assert left == pytest.approx(LEASE, abs=60)
    assert renewals == 1


def test_worker_that_stays_silent_after_an_outage_is_lost(
    store: Store,
    live: WorkerRecord,
    away: Callable[[float], None],
    advance: Callable[[float], None],
) -> None:
    away(OUTAGE)
    assert store.workers.reap().workers == ()
    advance(LEASE + 1)
    assert store.workers.reap().workers == ("w1",)


def test_worker_that_was_dead_before_the_outage_is_lost(
    store: Store,
    live: WorkerRecord,
    away: Callable[[float], None],
    advance: Callable[[float], None],
) -> None:
    advance(LEASE + 1)
    away(OUTAGE)
    assert store.workers.reap().workers == ("w1",)


def test_worker_without_a_sign_of_life_is_not_kept_for_ever(
    store: Store, live: WorkerRecord, away: Callable[[float], None]
) -> None:
    for _ in range(MOST_RENEWALS):
        away(2 * LEASE)
        assert store.workers.reap().workers == ()
    assert lease_of(store)[1] == MOST_RENEWALS
    away(2 * LEASE)
    assert store.workers.reap().workers == ("w1",)


def test_lease_that_ends_in_a_quiet_while_is_extended_a_little(
    store: Store,
    live: WorkerRecord,
    away: Callable[[float], None],
    advance: Callable[[float], None],
) -> None:
    advance(LEASE - QUIET / 2)
    away(QUIET)
    assert store.workers.reap().workers == ()
    left, renewals = lease_of(store)
    assert left == pytest.approx(LEASE / 4, abs=60)
    assert renewals == 1
    advance(LEASE / 4 + 1)
    assert store.workers.reap().workers == ("w1",)


def test_quiet_while_leaves_a_lease_that_lasts_longer(
    store: Store, live: WorkerRecord, away: Callable[[float], None]
) -> None:
    away(QUIET)
    store.backend.touch()
    left, renewals = lease_of(store)
    assert left == pytest.approx(LEASE - QUIET, abs=60)
    assert renewals == 0


def test_shortest_lease_decides_what_an_outage_is(
    store: Store,
    live: WorkerRecord,
    enrol: Callable[..., WorkerRecord],
    away: Callable[[float], None],
) -> None:
    enrol("w2", lease_seconds=80_000.0)
    away(OUTAGE)
    store.backend.touch()
    assert lease_of(store, "w2") == (pytest.approx(80_000, abs=60), 1)


def test_store_that_is_touched_was_not_away(
    store: Store, live: WorkerRecord, away: Callable[[float], None]
) -> None:
    for _ in range(6):
        away(LEASE / 5)
        store.backend.touch()
    assert lease_of(store)[1] == 0
    assert store.workers.reap().workers == ("w1",)


def test_launch_gets_its_whole_deadline_after_an_outage(
    store: Store, away: Callable[[float], None], advance: Callable[[float], None]
) -> None:
    worker_id = reserve(store)
    away(OUTAGE)
    store.backend.touch()
    assert lease_of(store, worker_id) == (pytest.approx(LEASE, abs=60), 1)
    advance(LEASE + 1)
    assert store.workers.reap().expired == (worker_id,)


def test_threshold_is_judged_by_the_last_heartbeat(
    store: Store, live: WorkerRecord, away: Callable[[float], None]
) -> None:
    away(OUTAGE)
    assert store.workers.reap(threshold_seconds=OUTAGE / 2).workers == ("w1",)


STEPS: dict[str, Callable[[Store], object]] = {
    "touch": lambda store: store.backend.touch(),
    "heartbeat": lambda store: store.workers.heartbeat("w2"),
    "register": lambda store: store.workers.register(model.WorkerRegistration(worker_id="w3")),
    "keep_alive": lambda store: store.backend.keep_alive(["w2"]),
    "claim": lambda store: store.pool("papers").claim("w2"),
    "claim_many": lambda store: store.pool("papers").claim_many("w2", 3),
    "reap": lambda store: store.workers.reap(),
    "update_status": lambda store: store.workers.update_status("w2", "terminating"),
    "request_check": lambda store: store.backend.request_check("papers", 3),
    "begin_check": lambda store: store.backend.begin_check("papers"),
    "record": reserve,
}


@pytest.mark.parametrize("step", STEPS)
def test_first_step_after_an_outage_renews_all_leases(
    store: Store,
    pool: WorkPool,
    live: WorkerRecord,
    enrol: Callable[..., WorkerRecord],
    away: Callable[[float], None],
    step: str,
) -> None:
    enrol("w2", lease_seconds=LEASE, pool_id="papers")
    pool.push_many([1, 2, 3])
    away(2 * LEASE)
    STEPS[step](store)
    assert lease_of(store) == (pytest.approx(LEASE, abs=60), 1)


def test_worker_that_waited_for_the_store_still_counts(
    store: Store, pool: WorkPool, live: WorkerRecord, away: Callable[[float], None]
) -> None:
    version = pool.observe().version
    away(2 * LEASE)
    decision = model.Decision(
        pool="papers",
        policy="test",
        direction="up",
        current=0,
        desired=1,
        reason="a test",
        launch=1,
        max_workers=1,
    )
    assert pool.record(decision, version=version) is None


SIGNS: dict[str, Callable[[Store], object]] = {
    "heartbeat": lambda store: store.workers.heartbeat("w1"),
    "register": lambda store: store.workers.register(
        model.WorkerRegistration(worker_id="w1", lease_seconds=LEASE)
    ),
    "keep_alive": lambda store: store.backend.keep_alive(["w1"]),
    "claim": lambda store: store.pool("papers").claim("w1"),
    "claim_many": lambda store: store.pool("papers").claim_many("w1", 3),
}


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("renewed_before", [False, True])
def test_sign_of_life_makes_the_lease_an_ordinary_one(
    store: Store,
    pool: WorkPool,
    live: WorkerRecord,
    away: Callable[[float], None],
    sign: str,
    renewed_before: bool,
) -> None:
    pool.push_many([1, 2, 3])
    away(2 * LEASE)
    if renewed_before:
        store.backend.touch()
        assert lease_of(store)[1] == 1
    SIGNS[sign](store)
    assert lease_of(store) == (pytest.approx(LEASE, abs=60), 0)


# -- what a worker held that did not come back -----------------------------------------------------

ENDS: dict[str, Callable[[Store], object]] = {
    "reap": lambda store: store.workers.reap(),
    "lost": lambda store: store.workers.update_status("w1", "lost"),
    "release": lambda store: store.pool("papers").release_by_worker("w1"),
    "register": lambda store: store.workers.register(model.WorkerRegistration(worker_id="w1")),
}


@pytest.mark.parametrize("end", ENDS)
def test_item_of_a_worker_lost_in_an_outage_is_not_charged(
    store: Store,
    pool: WorkPool,
    live: WorkerRecord,
    away: Callable[[float], None],
    advance: Callable[[float], None],
    end: str,
) -> None:
    pool.push("work", max_retries=1)
    item = must_claim(pool)
    away(OUTAGE)
    store.backend.touch()
    advance(LEASE + 1)
    ENDS[end](store)
    item = pool.get(item)
    assert (item.status, item.attempts, item.given_back) == ("pending", 0, 1)
    assert item.error is None


def test_item_of_a_worker_that_came_back_and_died_is_charged(
    store: Store,
    pool: WorkPool,
    live: WorkerRecord,
    away: Callable[[float], None],
    advance: Callable[[float], None],
) -> None:
    pool.push("work", max_retries=1)
    item = must_claim(pool)
    away(OUTAGE)
    store.workers.heartbeat("w1")
    advance(LEASE + 1)
    assert store.workers.reap().poisoned == 1
    assert pool.get(item).status == "poisoned"


def test_result_after_an_outage_is_accepted(
    store: Store, pool: WorkPool, live: WorkerRecord, away: Callable[[float], None]
) -> None:
    pool.push("work")
    item = must_claim(pool)
    away(5 * LEASE)
    store.workers.reap()
    assert pool.complete(item, "done")


# -- a parent that sees its workers alive ----------------------------------------------------------


def test_keep_alive_extends_the_leases_of_live_workers(
    store: Store, enrol: Callable[..., WorkerRecord], advance: Callable[[float], None]
) -> None:
    for worker_id in ("w1", "w2", "gone"):
        enrol(worker_id, lease_seconds=LEASE, pool_id="papers")
    store.workers.update_status("w2", "terminating")
    store.workers.update_status("gone", "terminated")
    before = store.workers.get("gone")
    launched = reserve(store)
    advance(900)
    ids = ["w1", "w2", "gone", "unknown", launched, "w1"]
    assert store.backend.keep_alive(ids) == 3
    for worker_id in ("w1", "w2", launched):
        assert lease_of(store, worker_id) == (pytest.approx(LEASE, abs=60), 0)
        kept = store.workers.get(worker_id)
        assert kept is not None
        assert kept.last_heartbeat == pytest.approx(kept.lease_until - LEASE, abs=1)
    assert store.workers.get("gone") == before
    assert store.backend.keep_alive([]) == 0


def test_keep_alive_without_workers_notes_that_the_store_works(
    store: Store, live: WorkerRecord, away: Callable[[float], None]
) -> None:
    away(OUTAGE)
    assert store.backend.keep_alive([]) == 0
    assert lease_of(store) == (pytest.approx(LEASE, abs=60), 1)


def test_keep_alive_comes_in_time_until_a_worker_is_reaped(
    store: Store, live: WorkerRecord, advance: Callable[[float], None]
) -> None:
    advance(LEASE + 1)
    assert store.backend.keep_alive(["w1"]) == 1
    assert store.workers.reap().workers == ()
    advance(LEASE + 1)
    assert store.workers.reap().workers == ("w1",)
    assert store.backend.keep_alive(["w1"]) == 0


# -- claims that were taken away ------------------------------------------------------------------


def refs(*items: WorkItem) -> list[ClaimRef]:
    return [ClaimRef(item_id=item.id, token=item.token) for item in items]


def test_lost_names_the_claims_that_no_longer_hold(
    store: Store, pool: WorkPool, live: WorkerRecord, advance: Callable[[float], None]
) -> None:
    pool.push_many([1, 2, 3])
    first, second, third = pool.claim_many("w1", 3)
    unknown = ClaimRef(item_id="unknown", token="t")
    assert store.backend.lost(refs(first, second, third)) == ()
    pool.cancel(second.id)
    pool.complete(first)
    assert store.backend.lost(refs(first, second, third)) == (first.id, second.id)
    assert store.backend.lost([unknown]) == ("unknown",)
    assert store.backend.lost([]) == ()
    before = store.workers.get("w1")
    advance(10)
    store.backend.lost(refs(third))
    assert store.workers.get("w1") == before


def is_rung(bell: int | None, seconds: float = 10.0) -> bool:
    assert bell is not None
    poll = select.poll()
    poll.register(bell, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


TAKEN: dict[str, Callable[[Store, WorkItem], object]] = {
    "cancel": lambda store, item: store.pool("papers").cancel(item.id),
    "release": lambda store, item: store.pool("papers").release_by_worker("w1"),
    "reap": lambda store, item: store.workers.reap(),
    "lost": lambda store, item: store.workers.update_status("w1", "lost"),
    "register": lambda store, item: store.workers.register(
        model.WorkerRegistration(worker_id="w1")
    ),
}


@pytest.mark.parametrize("taken", TAKEN)
def test_bell_rings_when_a_claim_is_taken_away(
    store: Store,
    pool: WorkPool,
    live: WorkerRecord,
    open_again: Callable[[], Store],
    advance: Callable[[float], None],
    taken: str,
) -> None:
    pool.push("work")
    item = must_claim(pool)
    other = open_again()
    worker = WorkerRef(worker_id="w1", incarnation=live.incarnation)
    bell = store.backend.cancel_bell(worker)
    assert store.backend.lost(refs(item)) == ()
    if bell is None:
        return  # this store has none: its users ask `lost`
    assert not is_rung(bell, 0.0)
    advance(LEASE + 1)
    TAKEN[taken](other, item)
    assert is_rung(store.backend.cancel_bell(worker))
    assert store.backend.lost(refs(item)) == (item.id,)
    assert not is_rung(store.backend.cancel_bell(worker), 0.0)


def test_bell_stays_silent_while_claims_hold(
    store: Store, pool: WorkPool, live: WorkerRecord
) -> None:
    worker = WorkerRef(worker_id="w1", incarnation=live.incarnation)
    bell = store.backend.cancel_bell(worker)
    pool.push_many([1, 2])
    pool.complete(must_claim(pool))
    waiting = pool.push("never claimed")
    pool.cancel(waiting)
    assert store.backend.lost(refs(must_claim(pool))) == ()
    assert bell is None or not is_rung(bell, 0.0)


def test_bell_is_opened_once(store: Store, live: WorkerRecord) -> None:
    worker = WorkerRef(worker_id="w1")
    assert store.backend.cancel_bell(worker) == store.backend.cancel_bell(worker)


def test_forked_child_has_a_bell_of_its_own(
    store: Store, pool: WorkPool, live: WorkerRecord, open_again: Callable[[], Store]
) -> None:
    pool.push("work")
    item = must_claim(pool)
    worker = WorkerRef(worker_id="w1", incarnation=live.incarnation)
    if store.backend.cancel_bell(worker) is None:
        return
    ready, tell = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            bell = store.backend.cancel_bell(worker)
            os.write(tell, b"listening")
            if is_rung(bell) and store.backend.lost(refs(item)) == (item.id,):
                status = 0
        finally:
            os._exit(status)
    assert os.read(ready, 9) == b"listening"
    open_again().pool("papers").cancel(item.id)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert is_rung(store.backend.cancel_bell(worker))  # the child took nothing from its parent
    os.close(ready)
    os.close(tell)
