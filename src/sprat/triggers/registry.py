"""The registry of triggers: documents in the store, so that who knows its URL can fire them.

Which events matter to a pool is also in the pool's settings (`events`), which everybody has read
anyway: an event that nobody waits for costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from sprat.config import schedule
from sprat.config.trigger import CRON, Trigger, checked
from sprat.core import jsontext, payload
from sprat.core.errors import InvalidInput
from sprat.store.store import Store

KIND = "trigger"
DUE = "trigger-due"  # of a cron trigger: the last time that was dealt with
PAGE = 1000
PATIENCE_SECONDS = 120.0  # a tick may be so late; after that it is missing


def stored(store: Store, name: str) -> Trigger | None:
    """The trigger of this name, if there is one. What cannot be a name is nobody's."""
    try:
        found = store.backend.document(KIND, payload.pool_name(name))
    except InvalidInput:
        return None
    return None if found is None else read(found.body)


def find(store: Store, name: str) -> Trigger:
    """The trigger of this name, or InvalidInput with those that there are."""
    found = stored(store, name)
    if found is not None:
        return found
    from sprat.core.did_you_mean import did_you_mean

    names = [trigger.name for trigger in every(store)]
    if not names:
        raise InvalidInput(f"there is no trigger {name!r}, nor any other: `sprat apply` makes them")
    raise InvalidInput(f"there is no trigger {name!r}{did_you_mean(name, names)}")


def every(store: Store) -> list[Trigger]:
    """All triggers, by name."""
    found: list[Trigger] = []
    after = None
    while page := store.backend.documents(KIND, PAGE, after):
        found += [read(document.body) for document in page]
        after = page[-1].name
    return found


def save(store: Store, trigger: Trigger) -> list[str]:
    """Keep a trigger; the names of what changed. One with a new schedule counts from now."""
    changed = differences(store, trigger)
    if trigger.type == CRON and {"new", "type", "schedule", "timezone"} & set(changed):
        mark(store, trigger.name, now(store))
    if changed:
        store.backend.put(KIND, trigger.name, jsontext.dumps(_plain(trigger)), None, None)
    return changed


def differences(store: Store, trigger: Trigger) -> list[str]:
    """The names of what is not as stored."""
    before = stored(store, trigger.name)
    if before is None:
        return ["new"]
    known = _plain(before)
    return [key for key, value in _plain(trigger).items() if known[key] != value]


def remove(store: Store, name: str) -> None:
    """Forget a trigger, or InvalidInput."""
    find(store, name)
    store.backend.put(KIND, name, None, None, None)
    store.backend.put(DUE, name, None, None, None)
    link(store)


def link(store: Store) -> None:
    """Tell every pool which events its triggers wait for."""
    triggers = every(store)
    for name in store.pools():
        pool = store.pool(name)
        events = events_of(triggers, name)
        if _as_lists(pool.state().settings.events) != events:
            pool.configure(events=events)


def events_of(triggers: Iterable[Trigger], pool: str) -> dict[str, list[str]]:
    """The names of the triggers that each event in this pool fires."""
    found: dict[str, list[str]] = {}
    for trigger in triggers:
        if trigger.pool in (None, pool):
            for event in trigger.on:
                found.setdefault(event, []).append(trigger.name)
    return found


def last_due(store: Store, name: str) -> tuple[float, int] | None:
    """The last due time of a cron trigger that was dealt with, and the version of that note."""
    found = store.backend.document(DUE, name)
    return None if found is None else (float(jsontext.loads(found.body)), found.version)


def mark(store: Store, name: str, due: float, version: int | None = None) -> bool:
    """Note that a due time is dealt with; False when somebody else did."""
    return store.backend.put(DUE, name, jsontext.dumps(due), version, None)


def next_due(store: Store, trigger: Trigger) -> float | None:
    """When a cron trigger fires next, as far as is known."""
    if trigger.type != CRON or trigger.schedule is None:
        return None
    return schedule.following(trigger.schedule, trigger.timezone, now(store))


def overdue(store: Store) -> list[tuple[str, float]]:
    """Cron triggers that nobody ticked for when they were due, and since when, longest first."""
    moment = now(store)
    found = []
    for trigger in every(store):
        note = last_due(store, trigger.name) if trigger.type == CRON else None
        if note is None or trigger.schedule is None:
            continue
        due = schedule.following(trigger.schedule, trigger.timezone, note[0])
        if due is not None and moment - due > PATIENCE_SECONDS:
            found.append((trigger.name, moment - due))
    return sorted(found, key=lambda one: -one[1])


def now(store: Store) -> float:
    """The time by the store's clock."""
    return store.backend.observe("triggers", None, 0.0).now


def _plain(trigger: Trigger) -> dict[str, object]:
    values = trigger.as_dict()
    values["on"] = list(trigger.on)
    values["command"] = None if trigger.command is None else list(trigger.command)
    return values


def read(body: str) -> Trigger:
    """A stored trigger, or InvalidInput. Names that only a newer sprat knows are left alone."""
    try:
        values = jsontext.loads(body)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InvalidInput("a stored trigger must be the JSON text of one object")
    known = Trigger._names
    given = {k: v for k, v in values.items() if k in known and v is not None and v != []}
    return checked(given)


def _as_lists(events: object) -> dict[str, list[str]]:
    return {event: list(names) for event, names in dict(events).items()}  # type: ignore[call-overload]  # a mapping
