"""Claims: how they begin, and all the ways in which they end. The heart of the protocol."""

from __future__ import annotations

import json

from sprat.core import histogram, model, retry_rules
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.memory.item import Item
    from sprat.store.memory.state import PoolRecord, StoreState, WorkerEntry

UNCOUNTED = (model.HAND_BACK, model.PARK)  # neither a run nor a failure


def begin(
    pool: PoolRecord, worker: WorkerEntry, n: int, now: float, *, announced: bool
) -> list[Item]:
    """Claim up to n items: the first is started, the others are claimed ahead."""
    claimed: list[Item] = []
    while len(claimed) < n:
        item = pool.ready.best(worker.capabilities, pool.has_room, pool.turns)
        if item is None or (claimed and not item.may_run_ahead()):
            break
        item.ahead = (
            (retry_rules.ANNOUNCED if announced else retry_rules.UNANNOUNCED) if claimed else 0
        )
        _hold(pool, worker, item, now)
        claimed.append(item)
    return claimed


def _hold(pool: PoolRecord, worker: WorkerEntry, item: Item, now: float) -> None:
    pool.ledger.count(now, histogram.WAIT, now - item.ready_at)
    pool.place(item, model.CLAIMED, now)
    pool.take_turn(item.tenant)
    if not item.ahead:
        item.attempts += 1
    item.claimed_by = worker.worker_id
    item.claimed_at = now
    item.epoch += 1
    item.token = runtime.random_bytes(8).hex()
    worker.claims[item.id] = item


def as_handed_out(item: Item) -> model.WorkItem:
    """The item as its worker sees it: with the number that its attempt will have."""
    record = item.as_record()
    return record.replace(attempts=item.attempts + 1) if item.ahead else record


def start(item: Item, token: str | None, now: float) -> bool:
    """Charge an item that was claimed ahead, before it runs."""
    if not item.is_held_with(token):
        return False
    if item.ahead:
        item.ahead = 0
        item.attempts += 1
        item.claimed_at = now
    return True


def settle(state: StoreState, settlement: model.Settlement, now: float) -> bool:
    """End a claim as its holder says; a stale holder changes nothing."""
    item = state.item(settlement.item_id)
    if not item.is_held_with(settlement.token):
        return _is_repeated(item, settlement)
    _count_run(state.pools[item.pool], item, settlement, now)
    item.settled_token = item.token
    item.settled_outcome = settlement.outcome
    if settlement.outcome == model.COMPLETE:
        _complete(state, item, settlement.result, now)
    else:
        _put_back(state, item, settlement, now)
    return True


def _put_back(state: StoreState, item: Item, settlement: model.Settlement, now: float) -> None:
    outcome = settlement.outcome
    bound = state.pools[item.pool].settings.max_transient
    verdict = retry_rules.after_failure(item.tally(), outcome, bound)
    hold = (settlement.error or "") if outcome == model.PARK else None
    if outcome not in UNCOUNTED and settlement.error is not None:
        item.error = settlement.error
    _end(state, item, verdict, now, delay=settlement.delay, hold=hold)


def _is_repeated(item: Item, settlement: model.Settlement) -> bool:
    """Whether this very settle was done before, and only its reply was lost."""
    if settlement.token is None or settlement.token != item.settled_token:
        return False
    if settlement.outcome != item.settled_outcome:
        return False
    return settlement.outcome != model.COMPLETE or is_same_json(settlement.result, item.result)


def is_same_json(first: str | None, other: str | None) -> bool:
    """Whether two texts say the same; in Python 1 == True, so the values are not compared."""
    if first is None or other is None or first == other:
        return first == other
    return _canonical(first) == _canonical(other)


def _canonical(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def _count_run(pool: PoolRecord, item: Item, settlement: model.Settlement, now: float) -> None:
    if settlement.outcome in UNCOUNTED:
        return
    since = now if item.claimed_at is None else item.claimed_at
    seconds = now - since if settlement.seconds is None else settlement.seconds
    pool.ledger.count(now, histogram.RUN, seconds)
    completed = settlement.outcome == model.COMPLETE
    pool.ledger.count(now, histogram.DONE if completed else histogram.FAIL)


def _complete(state: StoreState, item: Item, result: str | None, now: float) -> None:
    verdict = retry_rules.NextState(
        status=model.DONE,
        attempts=item.attempts + (1 if item.ahead else 0),
        suspect=False,
        given_back=item.given_back,
        transients=item.transients,
    )
    item.result = result
    item.error = None
    _end(state, item, verdict, now)


def _end(
    state: StoreState,
    item: Item,
    verdict: retry_rules.NextState,
    now: float,
    *,
    delay: float = 0.0,
    hold: str | None = None,
) -> None:
    item.attempts = verdict.attempts
    item.suspect = verdict.suspect
    item.given_back = verdict.given_back
    item.transients = verdict.transients
    drop(state, item)
    if verdict.status == model.PENDING:
        item.claimed_by = None
        item.claimed_at = None
    else:
        item.finished_at = now
    state.pools[item.pool].place(item, verdict.status, now, delay=delay, hold=hold)


def drop(state: StoreState, item: Item) -> None:
    """The token of the claim, if there was one, is worth nothing from here on."""
    if item.claimed_by in state.workers:
        state.workers[item.claimed_by].claims.pop(item.id, None)
    item.token = None
    item.ahead = 0


def hand_back_all(state: StoreState, worker: WorkerEntry, now: float) -> None:
    """A worker that leaves in good order gives its items back, uncharged."""
    for item in list(worker.claims.values()):
        verdict = retry_rules.after_failure(item.tally(), model.HAND_BACK)
        _end(state, item, verdict, now)


def release_all(
    state: StoreState,
    worker: WorkerEntry,
    now: float,
    *,
    reason: str | None,
    pool: str | None = None,
    started: Sequence[str] | None = None,
) -> tuple[int, int]:
    """End all claims of a dead worker (in one pool): how many, and how many were poisoned."""
    items = [item for item in worker.claims.values() if pool is None or item.pool == pool]
    in_outage = worker.renewals > 0
    poisoned = [
        _release(state, item, now, reason=reason, started=started, in_outage=in_outage)
        for item in items
    ]
    return len(items), sum(poisoned)


def _release(
    state: StoreState,
    item: Item,
    now: float,
    *,
    reason: str | None,
    started: Sequence[str] | None,
    in_outage: bool,
) -> bool:
    """True if it was the item's last attempt."""
    if started is not None and item.id in started:
        start(item, item.token, now)
    if not item.ahead:
        state.pools[item.pool].ledger.count(now, histogram.FAIL)
    verdict = retry_rules.after_crash(
        item.tally(), never_started=started is not None, in_outage=in_outage
    )
    poisoned = verdict.status == model.POISONED
    if poisoned:
        item.error = f"worker {item.claimed_by} was lost" + (f": {reason}" if reason else "")
    _end(state, item, verdict, now)
    return poisoned
