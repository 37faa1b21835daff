"""Statistics: what a pool did, counted as it happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from sprat.core.errors import InvalidInput
from sprat.core.histogram import EDGES, bin_of
from sprat.core.model import Decision, DecisionCount, Stats, Totals, WorkerRecord, WorkItem
from sprat.store.pool import WorkPool
from sprat.store.store import Store

Advance = Callable[[float], None]
Enrol = Callable[..., WorkerRecord]

BIN = 0.25  # how exact a percentile is


def must_claim(pool: WorkPool, worker: str = "w1") -> WorkItem:
    item = pool.claim(worker)
    assert item is not None
    return item


def test_pool_without_history_has_none(pool: WorkPool) -> None:
    assert pool.stats(60) == Stats(seconds=60)
    assert pool.history() == []


def test_arrivals_are_counted_at_push(pool: WorkPool) -> None:
    pool.push_many(range(5))
    pool.push("later", delay=60)
    pool.push("parked", backlog=True)
    pool.push("key", key="k")
    pool.push("key", key="k")
    assert pool.stats(600).arrivals == 8
    assert pool.stats(600).arrivals_per_second == pytest.approx(8 / 600)


def test_waits_are_from_ready_to_claim(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.push("now")
    pool.push("later", delay=60)
    advance(100)
    must_claim(pool), must_claim(pool)
    stats = pool.stats()
    assert stats.starts == 2
    assert stats.wait_mean == pytest.approx((100 + 40) / 2, rel=0.05)
    assert stats.wait_p50 == pytest.approx(40, rel=BIN)
    assert stats.wait_p95 == pytest.approx(100, rel=BIN)


def test_wait_of_an_item_that_comes_back_begins_anew(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.push("work", max_retries=9)
    item = must_claim(pool)
    advance(500)
    pool.fail(item, "again", delay=20)
    advance(30)
    must_claim(pool)
    stats = pool.stats(6000)
    assert stats.starts == 2
    assert stats.wait_mean == pytest.approx(5, rel=0.1)


def test_batch_counts_every_claim(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push_many(range(4))
    pool.claim_many("w1", 4)
    assert pool.stats().starts == 4


@pytest.mark.parametrize("how", ["complete", "fail", "transient", "poison"])
def test_runs_are_from_claim_to_settle(
    pool: WorkPool, worker: WorkerRecord, advance: Advance, how: str
) -> None:
    pool.push("work")
    item = must_claim(pool)
    advance(80)
    if how == "complete":
        pool.complete(item)
    else:
        pool.fail(item, "no", transient=how == "transient", poison=how == "poison")
    stats = pool.stats()
    assert stats.run_mean == pytest.approx(80, rel=0.05)
    assert stats.run_p50 == pytest.approx(80, rel=BIN)
    assert (stats.finished, stats.failed) == ((1, 0) if how == "complete" else (0, 1))


def test_hand_back_is_neither_a_run_nor_a_failure(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.push("work")
    item = must_claim(pool)
    advance(80)
    pool.hand_back(item)
    stats = pool.stats()
    assert (stats.run_mean, stats.finished, stats.failed) == (0, 0, 0)


def test_settlements_own_seconds_beat_the_clock(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.push_many(["a", "b"])
    first, second = must_claim(pool), must_claim(pool)
    advance(80)
    pool.complete(first, seconds=2.0)
    pool.settle_many([pool.failure(second, "no", seconds=4.0)])
    stats = pool.stats()
    assert stats.run_mean == pytest.approx(3)
    assert stats.run_p50 == pytest.approx(2, rel=BIN)
    assert stats.run_p95 == pytest.approx(4, rel=BIN)
    assert stats.run_scv == pytest.approx(1 / 9)


def test_started_items_of_a_dead_worker_are_failures(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push_many(["a", "b", "c"])
    batch = pool.claim_many("w1", 3)
    pool.release_by_worker("w1", started=[batch[1].id])
    stats = pool.stats()
    assert stats.failed == 2  # the first of the batch, and the one that is named
    assert stats.run_mean == 0


def test_stale_settle_counts_for_nothing(pool: WorkPool, worker: WorkerRecord) -> None:
    pool.push("work")
    item = must_claim(pool)
    pool.release_by_worker("w1")
    before = pool.stats()
    pool.complete(item), pool.fail(item)
    assert pool.stats() == before


def test_percentiles_are_exact_to_a_bin(pool: WorkPool, worker: WorkerRecord) -> None:
    durations = [0.002 * 1.3**n for n in range(40)]
    pool.push_many(durations)
    for item in pool.claim_many("w1", 40):
        pool.complete(item, seconds=item.data)
    stats = pool.stats()
    assert stats.run_p50 == pytest.approx(durations[19], rel=BIN)
    assert stats.run_p95 == pytest.approx(durations[37], rel=BIN)
    assert stats.run_mean == pytest.approx(sum(durations) / 40)


def test_every_store_has_the_same_bins(pool: WorkPool, worker: WorkerRecord) -> None:
    ends = [edge for edge in EDGES if 0.002 < edge < 1e6]
    durations = [round(edge + more, 6) for edge in ends for more in (-1e-6, 0, 1e-6)]
    pool.push_many(durations)
    while items := pool.claim_many("w1", 50):
        pool.settle_many([pool.completion(item, seconds=item.data) for item in items])
    found: Counter[int] = Counter()
    for bucket in pool.history():
        found.update(dict(bucket.runs))
    assert found == Counter(map(bin_of, durations))


def test_statistics_are_those_of_the_last_seconds(pool: WorkPool, advance: Advance) -> None:
    pool.push_many(range(3))
    advance(600)
    pool.push_many(range(2))
    assert pool.stats(300).arrivals == 2
    assert pool.stats(3600).arrivals == 5
    assert pool.stats(300).seconds == 300


def test_history_is_in_buckets_of_ten_seconds_oldest_first(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    pool.push_many(range(3))
    advance(100)
    pool.complete(must_claim(pool), seconds=7.0)
    first, last = pool.history()
    assert (first.arrivals, first.starts, first.finished) == (3, 0, 0)
    assert (last.arrivals, last.starts, last.finished, last.failed) == (0, 1, 1, 0)
    assert last.run_seconds == pytest.approx(7)
    assert last.wait_seconds == pytest.approx(100, rel=0.05)
    assert last.runs == ((bin_of(7.0), 1),)
    assert [n for _, n in last.waits] == [1]
    assert (first.waits, first.runs) == ((), ())
    for bucket in (first, last):
        assert bucket.seconds == 10
        assert bucket.at % 10 == 0
    assert last.at - first.at == pytest.approx(100, abs=10)
    assert [bucket.arrivals for bucket in pool.history(60)] == [0]


def test_history_is_rolled_up_to_a_quarter_of_an_hour_after_two_hours(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    for _ in range(4):
        pool.push("work")
        pool.complete(must_claim(pool), seconds=3.0)
        advance(20)
    before = pool.stats(86400)
    advance(2 * 3600 + 900)
    pool.push("new")
    pool.purge()
    *old, new = pool.history(86400)
    assert all(bucket.seconds == 900 and bucket.at % 900 == 0 for bucket in old)
    assert len(old) <= 2
    assert sum(bucket.finished for bucket in old) == 4
    assert sum(bucket.run_seconds for bucket in old) == pytest.approx(12)
    assert (new.seconds, new.arrivals) == (10, 1)
    after = pool.stats(86400)
    assert after.replace(arrivals=4) == before.replace(
        wait_mean=after.wait_mean, run_mean=after.run_mean, run_scv=after.run_scv
    )
    pool.purge()
    assert pool.history(86400) == [*old, new]


def test_history_is_dropped_after_thirty_five_days(pool: WorkPool, advance: Advance) -> None:
    pool.push("work")
    advance(34 * 86400)
    pool.purge()
    assert pool.stats(60 * 86400).arrivals == 1
    advance(2 * 86400)
    pool.purge()
    assert pool.stats(60 * 86400).arrivals == 0
    assert pool.history(60 * 86400) == []


def test_pools_have_statistics_of_their_own(store: Store) -> None:
    store.pool("one").push("work")
    assert store.pool("one").stats().arrivals == 1
    assert store.pool("other").stats().arrivals == 0


def decided(pool: WorkPool, direction: str, reason: str) -> None:
    decision = Decision(
        pool=pool.name,
        policy="fixed",
        direction=direction,
        current=0,
        desired=0,
        reason=reason,
        max_workers=1,
    )
    assert pool.record(decision, version=pool.observe().version)


def counted(totals: Totals) -> tuple[int, ...]:
    return (totals.arrivals, totals.starts, totals.finished, totals.failed)


def test_pool_that_did_nothing_has_no_totals(pool: WorkPool) -> None:
    assert pool.totals() == Totals()


def test_totals_count_everything_however_old(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    """At every age of what was counted: in fine buckets, in wide ones, and after these."""
    pool.push_many(range(3))
    pool.complete(must_claim(pool), seconds=7.0)
    pool.settle_many([pool.failure(must_claim(pool), "no", seconds=0.5)])
    first = pool.totals()
    assert counted(first) == (3, 2, 1, 1)
    assert first.run_seconds == pytest.approx(7.5)
    assert first.runs == ((bin_of(0.5), 1), (bin_of(7.0), 1))
    assert sum(n for _, n in first.waits) == 2
    for age in (0, 600, 3 * 3600, 3 * 3600, 86400, 36 * 86400, 36 * 86400):
        advance(age)
        for _ in range(2):
            pool.purge()
            seen = pool.totals()
            assert counted(seen) == counted(first)
            assert (seen.waits, seen.runs) == (first.waits, first.runs)
            assert seen.run_seconds == pytest.approx(first.run_seconds)
            assert seen.wait_seconds == pytest.approx(first.wait_seconds)
    assert pool.history(100 * 86400) == []
    pool.push("more")
    assert counted(pool.totals()) == (4, 2, 1, 1)


def test_totals_go_on_while_old_buckets_are_rolled_up(pool: WorkPool, advance: Advance) -> None:
    for n in range(1, 40):
        pool.push("work")
        advance(1700)
        pool.purge()
        assert pool.totals().arrivals == n


def test_purges_at_once_count_nothing_twice(
    pool: WorkPool, worker: WorkerRecord, advance: Advance
) -> None:
    for n in range(1, 6):
        pool.push("work")
        pool.complete(must_claim(pool), seconds=1.0)
        advance(3 * 3600)
        with ThreadPoolExecutor(6) as threads:
            for done in [threads.submit(pool.purge) for _ in range(6)]:
                done.result()
        assert counted(pool.totals()) == (n, n, n, 0)


def test_statistics_that_a_process_held_back_are_counted_late(
    pool: WorkPool, worker: WorkerRecord, advance: Advance, open_again: Callable[[], Store]
) -> None:
    """Another process has rolled up their bucket's quarter of an hour already."""
    other = open_again().pool(pool.name)
    for n in range(1, 4):
        pool.push("work")
        pool.complete(must_claim(pool), seconds=1.0)
        advance(3 * 3600)
        other.purge()
        assert counted(pool.totals()) == (n, n, n, 0)
        other.purge()
        assert counted(other.totals()) == (n, n, n, 0)


def test_decisions_are_counted_by_direction_and_reason(pool: WorkPool, advance: Advance) -> None:
    for _ in range(2):
        decided(pool, "up", "p95 3 s is more than 2 s")
    decided(pool, "down", "idle for 5 s")
    decided(pool, "hold", "because")
    wanted = (
        DecisionCount(direction="up", reason="latency", n=2),
        DecisionCount(direction="down", reason="idle", n=1),
        DecisionCount(direction="hold", reason="other", n=1),
    )
    assert pool.totals() == Totals(decisions=wanted)
    pool.push("work")
    for _ in range(3):
        advance(3 * 3600)
        pool.purge()
        assert pool.totals().decisions == wanted
    advance(40 * 86400)  # also when the decisions themselves are forgotten
    pool.purge()
    assert pool.decisions() == []
    decided(pool, "up", "p95 3 s is more than 2 s")
    assert pool.totals().decisions == (wanted[0].replace(n=3), *wanted[1:])


def test_a_decision_that_was_not_recorded_is_not_counted(pool: WorkPool) -> None:
    decision = Decision(
        pool=pool.name,
        policy="fixed",
        direction="up",
        current=0,
        desired=1,
        reason="queue",
        launch=1,
        max_workers=0,
    )
    assert pool.record(decision, version=pool.observe().version) is None
    assert pool.record(decision.replace(launch=0), version=99) is None
    assert pool.totals() == Totals()


def test_a_decision_goes_up_or_down_or_holds(pool: WorkPool) -> None:
    with pytest.raises(InvalidInput, match="unknown direction 'sideways': one of up, down, hold"):
        decided(pool, "sideways", "why not")


def test_pools_have_totals_of_their_own(store: Store) -> None:
    store.pool("one").push("work")
    decided(store.pool("one"), "up", "queue")
    assert store.pool("other").totals() == Totals()
