"""Every store behaves as the memory store does, step by step, whatever is done to it.

The same random verbs are sent to both; every answer, and the whole visible state after each step,
must be equal. SPRAT_MODEL_EXAMPLES=2000 makes a long search of it (and another one each time).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from worlds import CONFORMING, World, move_mark

from sprat.core import model, payload
from sprat.core.errors import SpratError
from sprat.store.backend import ClaimRef
from sprat.store.memory.backend import MemoryBackend
from sprat.store.pool import WorkPool
from sprat.store.store import Store

EXAMPLES = os.environ.get("SPRAT_MODEL_EXAMPLES")
POOLS = ("p", "q")
WORKERS = ("w0", "w1", "w2")
GROUPS = ("x", "y")
TASKS = ("m:f", "m:g")
MOMENTS = ("created_at", "run_at", "claimed_at", "finished_at")
# Between a verb on the one store and the same on the other a busy machine may stop for a while; all
# but the shortest step of time below moves a lease by more.
LEASE_SLACK_SECONDS = 3.0

pool_names = st.sampled_from(POOLS)
choices = st.integers(0, 10_000)  # which of the things made so far: taken modulo their number
few_choices = st.lists(choices, max_size=3)
capabilities = st.lists(st.sampled_from(GROUPS), unique=True)
delays = st.sampled_from([0, 0, 10, 100])
item_options = st.fixed_dictionaries(
    {
        "max_retries": st.integers(1, 3),
        "priority": st.integers(0, 1),
        "delay": delays,
        "tenant": st.sampled_from([None, None, "a", "b"]),
        "group": st.sampled_from([None, None, *GROUPS]),
        "key": st.sampled_from([None, None, None, "k1", "k2"]),
        "backlog": st.sampled_from([False, False, False, True]),
        "task": st.sampled_from([None, *TASKS]),
    }
)


class RealTime:
    """A clock that runs as the other store's does, and is moved forward with it."""

    def __init__(self) -> None:
        self.ahead = time.time() - time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


class Side:
    """One of the two stores, and what it answered so far: tokens and some ids are its own."""

    def __init__(
        self, store: Store, advance: Callable[[float], None], outage: Callable[[float], None]
    ) -> None:
        self.store = store
        self.advance = advance
        self.outage = outage
        self.pools: dict[str, WorkPool] = {name: store.pool(name) for name in POOLS}
        self.claims: list[model.WorkItem] = []
        self.records: list[model.WorkerRecord] = []  # every registration ever made
        self.launched: list[str] = []

    def worker_ids(self) -> list[str]:
        return [*WORKERS, *self.launched]

    def worker(self, choice: int) -> str | model.WorkerRecord:
        """A worker by its id, or as one of its incarnations."""
        known: list[str | model.WorkerRecord] = [*self.worker_ids(), *self.records]
        return known[choice % len(known)]

    def worker_id(self, choice: int) -> str:
        return self.worker_ids()[choice % len(self.worker_ids())]

    def named(self, value: Any) -> Any:
        """The value with the ids of launched workers replaced by names that both sides share."""
        if isinstance(value, str):
            for number, worker_id in enumerate(self.launched):
                value = value.replace(worker_id, f"launched{number}")
            return value
        if isinstance(value, list | tuple):
            return [self.named(inner) for inner in value]
        return value


class StoresAgree(RuleBasedStateMachine):
    make_world: Callable[[Path], World]

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="sprat-model-"))
        self.world = type(self).make_world(self.place)
        clock = RealTime()

        backend = MemoryBackend(clock=clock)

        def advance(seconds: float) -> None:
            outage(seconds)
            move_mark(backend, seconds)

        def outage(seconds: float) -> None:
            clock.ahead += seconds

        self.ours = Side(Store(backend), advance, outage)
        self.theirs = Side(self.world.open(), self.world.advance, self.world.outage)
        self.pushed: list[tuple[str, list[model.NewItem]]] = []

    def teardown(self) -> None:
        self.world.close()
        shutil.rmtree(self.place)

    # -- doing the same on both sides -----------------------------------------------------------

    def both(self, verb: Callable[[Side], Any], seen: Callable[[Any], Any] = lambda a: a) -> Any:
        """Do it on both sides; the answers, as `seen`, must be equal. None after an error."""
        ours, theirs = (attempt(verb, side) for side in (self.ours, self.theirs))
        if isinstance(ours, SpratError) or isinstance(theirs, SpratError):
            assert type(ours) is type(theirs), f"{ours!r} but {theirs!r}"
            # Whether a refused verb counts as a sign that the store works is up to the store.
            for side in (self.ours, self.theirs):
                side.store.backend.touch()
            return None
        shown = [side.named(seen(a)) for side, a in ((self.ours, ours), (self.theirs, theirs))]
        assert shown[0] == shown[1]
        return ours, theirs

    def item_id(self, choice: int) -> str:
        known = [item.id for _, items in self.pushed for item in items]
        return known[choice % len(known)] if known and choice % 20 else "unknown"

    def item_ids(self, chosen: Sequence[int]) -> list[str]:
        return [self.item_id(choice) for choice in chosen]

    # -- items ----------------------------------------------------------------------------------

    @initialize()
    def two_workers(self) -> None:
        for number in (0, 1):
            self.register(number, ["x"] * number, "p", 1000)

    @rule(pool=pool_names, options=st.lists(item_options, min_size=1, max_size=3))
    def push(self, pool: str, options: list[dict[str, Any]]) -> None:
        items = [payload.new_item(len(self.pushed) % 2, **one) for one in options]
        self.pushed.append((pool, items))
        self.both(lambda side: side.pools[pool].push_items(items))

    @precondition(lambda self: self.pushed)
    @rule(choice=choices)
    def push_again(self, choice: int) -> None:
        pool, items = self.pushed[choice % len(self.pushed)]
        stored = {item.id for item in self.ours.pools[pool].items(limit=10_000)}
        if len(items) > 1 and not stored.issuperset(item.id for item in items):
            return  # a push that was never stored as a whole is no repetition
        self.both(lambda side: side.pools[pool].push_items(items))

    @rule(pool=pool_names, choice=choices, n=st.integers(1, 4), announced=st.booleans())
    def claim(self, pool: str, choice: int, n: int, announced: bool) -> None:
        answers = self.both(
            lambda side: side.pools[pool].claim_many(side.worker(choice), n, announced=announced),
            seen=lambda items: [public(item) for item in items],
        )
        self.remember(answers)

    def remember(self, answers: tuple[list[model.WorkItem], list[model.WorkItem]] | None) -> None:
        if answers is not None:
            self.ours.claims += answers[0]
            self.theirs.claims += answers[1]

    @precondition(lambda self: self.ours.claims)
    @rule(
        pool=pool_names,
        choice=choices,
        outcome=st.sampled_from(model.OUTCOMES),
        delay=delays,
        result=st.sampled_from([None, 1, {"a": [2]}]),
        error=st.sampled_from([None, "failed", "failed again"]),
    )
    def settle(
        self, pool: str, choice: int, outcome: str, delay: float, result: Any, error: str | None
    ) -> None:
        self.both(
            lambda side: side.pools[pool].settle_many(
                [settlement(side, choice, outcome, delay=delay, result=result, error=error)]
            )
        )

    @precondition(lambda self: self.ours.claims)
    @rule(
        pool=pool_names,
        worker=choices,
        settles=st.lists(st.tuples(choices, st.sampled_from(model.OUTCOMES)), max_size=4),
        start=st.none() | choices,
        n=st.integers(0, 3),
        announced=st.booleans(),
    )
    def exchange(
        self,
        pool: str,
        worker: int,
        settles: list[tuple[int, str]],
        start: int | None,
        n: int,
        announced: bool,
    ) -> None:
        answers = self.both(
            lambda side: side.pools[pool].exchange(
                side.worker(worker),
                settlements=[settlement(side, *one) for one in settles],
                start=None if start is None else claim_of(side, start),
                claim=n,
                announced=announced,
            ),
            seen=lambda a: (a.settled, a.started, a.version, list(map(public, a.items))),
        )
        if answers is not None:
            self.remember((list(answers[0].items), list(answers[1].items)))

    @precondition(lambda self: self.ours.claims)
    @rule(pool=pool_names, choice=choices)
    def start(self, pool: str, choice: int) -> None:
        self.both(lambda side: side.pools[pool].start(claim_of(side, choice)))

    @precondition(lambda self: self.ours.claims)
    @rule(choice=choices, progress=st.none() | st.sampled_from([0.0, 0.5]), note=st.booleans())
    def save(self, choice: int, progress: float | None, note: bool) -> None:
        def save(side: Side) -> bool:
            pool, item = side.pools["p"], claim_of(side, choice)
            if progress is None:
                return pool.save_checkpoint(item, {"page": choice})
            return pool.report_progress(item, progress, "note" if note else None)

        self.both(save)

    @rule(pool=pool_names, chosen=few_choices)
    def cancel(self, pool: str, chosen: list[int]) -> None:
        self.both(lambda side: side.pools[pool].cancel(*self.item_ids(chosen)))

    @rule(pool=pool_names, chosen=few_choices)
    def requeue(self, pool: str, chosen: list[int]) -> None:
        self.both(lambda side: side.pools[pool].requeue(*self.item_ids(chosen)))

    @rule(pool=pool_names, worker=choices, started=st.none() | few_choices)
    def release(self, pool: str, worker: int, started: list[int] | None) -> None:
        named = None if started is None else self.item_ids(started)
        self.both(
            lambda side: side.pools[pool].release_by_worker(side.worker_id(worker), started=named)
        )

    # -- pools ----------------------------------------------------------------------------------

    @rule(
        pool=pool_names,
        limit=st.none() | st.integers(0, 2),
        limits=st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 2)),
        keep=st.none() | st.just(50),
        transient=st.sampled_from([None, 0, 1, 10]),
    )
    def configure(
        self,
        pool: str,
        limit: int | None,
        limits: dict[str, int],
        keep: float | None,
        transient: int | None,
    ) -> None:
        changes = {"tenant_limit": limit, "tenant_limits": limits, "keep_done_seconds": keep}
        changes["max_transient"] = transient
        self.both(lambda side: side.pools[pool].configure(**changes))

    @rule(
        pool=pool_names,
        seconds=st.sampled_from([None, 0, 0, 10, 100]),
        reason=st.sampled_from([None, "maintenance"]),
    )
    def pause(self, pool: str, seconds: float | None, reason: str | None) -> None:
        self.both(lambda side: side.pools[pool].pause(seconds, reason=reason))

    @rule(pool=pool_names, seconds=st.sampled_from([5, 50]))
    def hold_off(self, pool: str, seconds: float) -> None:
        self.both(lambda side: side.pools[pool].hold_off(seconds, reason=f"for {seconds}"))

    @rule(pool=pool_names, most=st.integers(0, 4))
    def request_check(self, pool: str, most: int) -> None:
        self.both(lambda side: side.store.backend.request_check(pool, most))

    @rule(pool=pool_names)
    def begin_check(self, pool: str) -> None:
        self.both(lambda side: side.store.backend.begin_check(pool))

    @rule(pool=pool_names, limit=st.integers(1, 3))
    def purge(self, pool: str, limit: int) -> None:
        self.both(lambda side: side.pools[pool].purge(limit))

    @rule(pool=pool_names, whole=st.booleans())
    def delete_pool(self, pool: str, whole: bool) -> None:
        """As it is, or after its work and workers were ended: few runs come to that by chance."""
        if whole:
            self.both(lambda side: end_all(side, pool))
        self.both(lambda side: side.store.backend.delete_pool(pool, 10_000))
        self.both(forget_deleted_workers)
        for number, worker_id in enumerate(WORKERS[:2]):
            if self.ours.store.workers.get(worker_id) is None:
                self.register(number, [], None, 1000)

    # -- workers --------------------------------------------------------------------------------

    @rule(
        number=st.integers(0, len(WORKERS) - 1),
        able=capabilities,
        pool=st.sampled_from([None, *POOLS]),
        lease=st.sampled_from([20, 1000]),
        tasks=st.lists(st.sampled_from(TASKS), unique=True),
    )
    def register(
        self,
        number: int,
        able: list[str],
        pool: str | None,
        lease: float,
        tasks: Sequence[str] = (),
    ) -> None:
        self.enrol(
            lambda side: model.WorkerRegistration(
                worker_id=WORKERS[number],
                capabilities=able,
                pool_id=pool,
                lease_seconds=lease,
                metadata={"able": len(able)},
                tasks=tasks,
            )
        )

    @precondition(lambda self: self.ours.launched)
    @rule(choice=choices, pid=st.integers(1, 2), able=capabilities)
    def register_launched(self, choice: int, pid: int, able: list[str]) -> None:
        self.enrol(
            lambda side: model.WorkerRegistration(
                worker_id=side.launched[choice % len(side.launched)],
                pid=pid,
                capabilities=able,
                reserved=True,
            )
        )

    def enrol(self, registration: Callable[[Side], model.WorkerRegistration]) -> None:
        answers = self.both(
            lambda side: side.store.workers.register(registration(side)), seen=public_worker
        )
        if answers is not None:
            self.ours.records.append(answers[0])
            self.theirs.records.append(answers[1])

    @rule(choice=choices, key=st.sampled_from([None, "a", "b"]), holding=few_choices)
    def heartbeat(self, choice: int, key: str | None, holding: list[int]) -> None:
        self.both(
            lambda side: side.store.workers.heartbeat(
                side.worker(choice),
                None if key is None else {key: choice},
                holding=[claim_of(side, one) for one in holding if side.claims],
            ),
            seen=lambda answer: (answer.status, answer.lost),
        )

    @rule(chosen=few_choices)
    def keep_alive(self, chosen: list[int]) -> None:
        self.both(
            lambda side: side.store.backend.keep_alive([side.worker_id(one) for one in chosen])
        )

    @rule()
    def touch(self) -> None:
        self.both(lambda side: side.store.backend.touch())

    @precondition(lambda self: self.ours.claims)
    @rule(chosen=few_choices)
    def lost(self, chosen: list[int]) -> None:
        def lost(side: Side) -> tuple[str, ...]:
            claims = [claim_of(side, choice) for choice in chosen]
            refs = [ClaimRef(item_id=item.id, token=item.token) for item in claims]
            return side.store.backend.lost(refs)

        self.both(lost)

    @rule(
        choice=choices,
        status=st.sampled_from(model.WORKER_STATUSES),
        reason=st.sampled_from([None, "told so"]),
        started=st.none() | few_choices,
    )
    def update_status(
        self, choice: int, status: str, reason: str | None, started: list[int] | None
    ) -> None:
        named = None if started is None else self.item_ids(started)
        self.both(
            lambda side: side.store.workers.update_status(
                side.worker(choice), status, reason=reason, started=named
            )
        )

    @rule(pool=st.sampled_from([None, *POOLS]), threshold=st.sampled_from([None, None, 15, 500]))
    def reap(self, pool: str | None, threshold: float | None) -> None:
        def reap(side: Side) -> list[Any]:
            reaped = side.store.workers.reap(pool, threshold_seconds=threshold)
            lost, expired = (sorted(side.named(ids)) for ids in (reaped.workers, reaped.expired))
            return [lost, expired, reaped.released, reaped.poisoned]

        self.both(reap)

    # -- scaling --------------------------------------------------------------------------------

    @rule(
        pool=pool_names,
        group=st.sampled_from([None, *GROUPS]),
        launch=st.integers(0, 2),
        drain=few_choices,
        direction=st.sampled_from(["up", "down", "hold"]),
        behind=st.sampled_from([0, 0, 0, 1]),
        most=st.integers(1, 4),
    )
    def record(
        self,
        pool: str,
        group: str | None,
        launch: int,
        drain: list[int],
        direction: str,
        behind: int,
        most: int,
    ) -> None:
        answers = self.both(
            lambda side: side.pools[pool].record(
                model.Decision(
                    pool=pool,
                    group=group,
                    policy="random",
                    direction=direction,
                    current=0,
                    desired=0,
                    reason="a throw of the dice",
                    launch=launch,
                    drain=tuple(side.worker_id(choice) for choice in drain),
                    max_workers=most,
                    start_deadline_seconds=50.0,
                ),
                version=side.pools[pool].observe(group).version - behind,
            ),
            seen=lambda a: a and [a.version, a.group, a.drained, len(a.launched)],
        )
        if answers is not None and answers[0] is not None:
            self.ours.launched += answers[0].launched
            self.theirs.launched += answers[1].launched

    # -- time -----------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 5, 12, 60, 400]))
    def advance(self, seconds: float) -> None:
        self.both(lambda side: side.advance(seconds))

    # Not near a quarter or three quarters of a lease, whatever they add up to: real time passes.
    @rule(seconds=st.sampled_from([1.3, 4.1, 11.7, 60, 400]))
    def outage(self, seconds: float) -> None:
        self.both(lambda side: side.outage(seconds))

    # -- and then -------------------------------------------------------------------------------

    @invariant()
    def everything_looks_the_same(self) -> None:
        self.both(lambda side: [side.store.pools(), public_workers(side)])
        for pool in POOLS:
            self.both(
                lambda side, pool=pool: side.pools[pool].items(limit=10_000),
                seen=lambda items: [public(item) for item in items],
            )
            for group in (None, *GROUPS):
                self.both(
                    lambda side, pool=pool, group=group: side.pools[pool].observe(
                        group, window=1e6
                    ),
                    seen=public_snapshot,
                )
            self.both(lambda side, pool=pool: side.pools[pool].totals(), seen=public_totals)
            self.both(
                lambda side, pool=pool: side.pools[pool].state(),
                seen=lambda state: [state.settings.as_dict(), state.version, state.paused],
            )

    @invariant()
    def promises_are_kept(self) -> None:
        for pool in self.theirs.pools.values():
            for item in pool.items(limit=10_000):
                assert item.attempts <= item.max_retries
                assert (item.status == model.CLAIMED) == (item.token is not None)
                assert (item.status in model.FINISHED) == (item.finished_at is not None)


def attempt(verb: Callable[[Side], Any], side: Side) -> Any:
    try:
        return verb(side)
    except SpratError as error:
        return error


def end_all(side: Side, pool: str) -> None:
    for worker in side.store.workers.list(status=model.LIVE, pool_id=pool):
        side.store.workers.update_status(worker.worker_id, model.LOST)
    unfinished = (model.PENDING, model.CLAIMED, model.BACKLOG)
    items = [item.id for status in unfinished for item in side.pools[pool].items(status)]
    side.pools[pool].cancel(*items)


def forget_deleted_workers(side: Side) -> None:
    """Verbs about unknown workers are refused; whether they note that the store works differs."""
    known = {worker.worker_id for worker in side.store.workers.list()}
    side.launched = [one for one in side.launched if one in known]
    side.records = [one for one in side.records if one.worker_id in known]


def claim_of(side: Side, choice: int) -> model.WorkItem:
    return side.claims[choice % len(side.claims)]


def settlement(side: Side, choice: int, outcome: str, **about: Any) -> model.Settlement:
    pool, item = side.pools["p"], claim_of(side, choice)
    if outcome == model.COMPLETE:
        return pool.completion(item, about.get("result"), seconds=1.0)
    if outcome == model.HAND_BACK:
        return model.Settlement(item_id=item.id, token=item.token, outcome=outcome)
    if outcome == model.PARK:
        failure = pool.failure(item, about.get("error"), delay=about.get("delay", 0))
        return failure.replace(outcome=model.PARK)
    return pool.failure(
        item,
        about.get("error"),
        transient=outcome == model.TRANSIENT,
        poison=outcome == model.POISON,
        delay=about.get("delay", 0),
        seconds=2.0,
    )


def public(item: model.WorkItem) -> list[Any]:
    """All that both stores must show alike: everything but the token and the moments."""
    values = item.as_dict()
    held = values.pop("token") is not None
    for moment in MOMENTS:
        values.pop(moment)
    return [held, item.finished_at is None, *values.items()]


def public_worker(worker: model.WorkerRecord) -> list[Any]:
    values = worker.as_dict()
    for moment in ("started_at", "last_heartbeat", "lease_until"):
        values.pop(moment)
    return list(values.items())


def public_workers(side: Side) -> list[Any]:
    """Workers in an order that both sides share, with what is left of their leases."""
    now = side.pools["p"].observe().now
    shown = [
        [*public_worker(worker), Roughly(worker.lease_until - now)]
        for worker in side.store.workers.list()
    ]
    return sorted((side.named(one) for one in shown), key=lambda one: one[0])


class Roughly:
    """A number of seconds that real time, passing meanwhile, may change a little."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Roughly) and abs(self.seconds - other.seconds) < (
            LEASE_SLACK_SECONDS
        )

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"about {self.seconds:.1f} s"


def public_snapshot(seen: model.Snapshot) -> list[Any]:
    stats = seen.stats
    return [
        *(seen.version, seen.counts.as_dict(), seen.starting, seen.active, seen.idle),
        *(seen.paused, seen.pause_reason, Roughly(seen.paused_seconds or 0.0), seen.parked),
        *(seen.launch_failures, seen.oldest_ready_seconds is None),
        Roughly(seen.next_due_seconds or 0.0),
        *(seen.last_up_at is None, seen.last_down_at is None),
        *(stats.arrivals, stats.starts, stats.finished, stats.failed),
    ]


def public_totals(totals: model.Totals) -> list[Any]:
    """Without durations, which real time changes a little."""
    return [
        *(totals.arrivals, totals.starts, totals.finished, totals.failed, totals.decisions),
        *(sum(n for _, n in bins) for bins in (totals.waits, totals.runs)),
    ]


# How many runs of 40 steps: fewer where a step takes long.
RUNS = {"sqlite": 60, "postgres": 40, "redis": 60, "http": 40, "http-postgres": 15}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.timeout(0 if EXAMPLES else 900)
def test_store_agrees_with_the_model(name: str) -> None:
    machine = type(
        f"{name.title()}AgreesWithMemory", (StoresAgree,), {"make_world": CONFORMING[name]}
    )
    case = machine.TestCase
    case.settings = settings(
        max_examples=int(EXAMPLES or RUNS[name]),
        stateful_step_count=40,
        deadline=None,
        derandomize=EXAMPLES is None,  # everybody's run is the same, unless it is a search
        suppress_health_check=list(HealthCheck),
    )
    case("runTest").runTest()
