"""A tick: fire every cron trigger that is due, each due time once, and wake pools that sleep.

Anybody may tick, any number at the same time: a due time is taken by a compare-and-set on the
trigger's note in the store. Times that were missed (nobody ticked) are made up for by one firing.
Only the store's clock counts, and the trigger's own time zone.
"""

from __future__ import annotations

from collections.abc import Sequence

from sprat.config import schedule
from sprat.config.trigger import CRON, Trigger
from sprat.core.record import Record
from sprat.core.runtime import runtime
from sprat.store.store import Store
from sprat.triggers import coalesce, firing, registry
from sprat.triggers.events import work_added
from sprat.triggers.firing import Fired

DUE = "due"  # the event of a trigger whose time has come
PAST_DUE_SECONDS = 0.05  # so long after it, who waited for a due time looks


class Ticked(Record):
    """What a tick fired, and the pools whose delayed work was due while nobody waited for it."""

    fired: tuple[Fired, ...] = ()
    woken: tuple[str, ...] = ()


def tick(
    store: Store, names: Sequence[str] = (), *, wait: float = 0.0, limit: float | None = None
) -> Ticked:
    """Fire what is due, of these triggers or of all. With `wait`, a trigger that is due within so
    many seconds is waited for: cron and the store may not agree about the time. What is fired gets
    `limit` seconds, if that is less than its own limit."""
    triggers = [registry.find(store, name) for name in names] or registry.every(store)
    crons = [trigger for trigger in triggers if trigger.type == CRON]
    if wait:
        _wait(store, crons, wait)
    now = registry.now(store)
    due = [trigger for trigger in crons if _take(store, trigger, now)]
    fired = _fire_together(store, due, limit)
    if not names:
        registry.link(store)  # pools that came after their triggers
    pools = dict.fromkeys(t.pool for t in crons if t.pool) if names else store.pools()
    woken = tuple(name for name in pools if name and work_added(store, name))
    return Ticked(fired=tuple(fired), woken=woken)


def _take(store: Store, trigger: Trigger, now: float) -> bool:
    """Whether the trigger is due and it is ours to fire it."""
    note = registry.last_due(store, trigger.name)
    if note is None:  # written with the trigger; without it, it counts from now
        registry.mark(store, trigger.name, now, 0)
        return False
    last, version = note
    due = schedule.latest(trigger.schedule or "", trigger.timezone, now)
    return due is not None and due > last and registry.mark(store, trigger.name, due, version)


def _wait(store: Store, triggers: Sequence[Trigger], wait: float) -> None:
    now = registry.now(store)
    coming = [schedule.following(t.schedule or "", t.timezone, now) for t in triggers]
    left = [due - now for due in coming if due is not None and due - now <= wait]
    if left:
        runtime.sleep(min(left) + PAST_DUE_SECONDS)


def _fire_together(store: Store, triggers: Sequence[Trigger], limit: float | None) -> list[Fired]:
    """Side by side: one that takes long does not keep the others waiting."""
    if len(triggers) < 2:
        return [_fire(store, trigger, limit) for trigger in triggers]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(triggers)) as threads:
        return list(threads.map(lambda trigger: _fire(store, trigger, limit), triggers))


def _fire(store: Store, trigger: Trigger, limit: float | None) -> Fired:
    """A pass may run beside another; of anything else only one runs at a time."""
    if trigger.is_pass:
        return firing.fire(store, trigger, event=DUE, limit=limit)
    answers: list[Fired] = []
    key = coalesce.key_of(trigger.name, DUE)
    coalesce.ask(store, key, limit=trigger.timeout_seconds)
    coalesce.answer(
        store,
        key,
        lambda: answers.append(firing.fire(store, trigger, event=DUE, limit=limit)),
        limit=trigger.timeout_seconds,
    )
    still_running = firing.Fired(
        trigger=trigger.name, event=DUE, pool=trigger.pool, said="is still running, and runs again"
    )
    return answers[-1] if answers else still_running
