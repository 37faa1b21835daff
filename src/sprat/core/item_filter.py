"""Which items of a pool are meant: the words for their states, and filters over their fields.

Tables and the dashboard show `ready`, `delayed`, `running` and `failed`; the store keeps `pending`,
`claimed` and `poisoned`. Filters take both.
"""

from __future__ import annotations

from sprat.core import model, payload
from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

READY, DELAYED, RUNNING, FAILED = "ready", "delayed", "running", "failed"
STORED = {READY: model.PENDING, DELAYED: model.PENDING}
STORED |= {RUNNING: model.CLAIMED, FAILED: model.POISONED}
SHOWN = {model.CLAIMED: RUNNING, model.POISONED: FAILED}
WORDS = (
    *(READY, DELAYED, RUNNING, model.DONE, FAILED, model.CANCELLED, model.BACKLOG),
    *(model.PENDING, model.CLAIMED, model.POISONED),
)

WINDOW = 10_000  # items that one step of a search looks at
MAX_TEXT = 1000  # characters of an error to look for
END = "~"  # after every digit of an id


def which(status: str | None = None, **filters: Any) -> model.ItemFilter:
    """A filter by a status of either vocabulary, and by fields of ItemFilter."""
    if status is not None and status not in WORDS:
        raise InvalidInput(f"unknown status {status!r}: one of {', '.join(WORDS)}")
    delayed = status == DELAYED if status in (READY, DELAYED) else None
    return checked(
        model.ItemFilter(
            status=None if status is None else STORED.get(status, status),
            delayed=delayed,
            **filters,
        )
    )


def checked(criteria: model.ItemFilter) -> model.ItemFilter:
    """The filter, or InvalidInput."""
    if criteria.status not in (None, *model.ITEM_STATUSES):
        raise InvalidInput(f"unknown status {criteria.status!r}")
    for name in ("prefix", "key", "tenant"):
        payload.label(getattr(criteria, name), name)
    for name in ("older_seconds", "newer_seconds"):
        if getattr(criteria, name) is not None:
            payload.seconds(getattr(criteria, name), name)
    text = criteria.error
    if text is not None and (not isinstance(text, str) or not 0 < len(text) <= MAX_TEXT):
        raise InvalidInput(f"the error to look for must be 1 to {MAX_TEXT} characters")
    if text is not None and "\0" in text:
        raise InvalidInput("no error has a zero character in it")
    return criteria


def is_plain(criteria: model.ItemFilter) -> bool:
    """Whether it is a status and nothing else: `items` answers that from an index."""
    return criteria == model.ItemFilter(status=criteria.status)


def fits(item: model.WorkItem, criteria: model.ItemFilter, now: float) -> bool:
    """Whether an item is one of those that are meant."""
    age = now - item.created_at
    return (
        criteria.status in (None, item.status)
        and (
            criteria.delayed is None
            or (item.status == model.PENDING and is_delayed(item, now) is criteria.delayed)
        )
        and item.id.startswith(criteria.prefix or "")
        and criteria.key in (None, item.key)
        and criteria.tenant in (None, item.tenant)
        and (criteria.error is None or criteria.error in (item.error or ""))
        and (criteria.older_seconds is None or age >= criteria.older_seconds)
        and (criteria.newer_seconds is None or age <= criteria.newer_seconds)
    )


def is_delayed(item: model.WorkItem, now: float) -> bool:
    """Whether it waits for its time. One that is held waits for a worker that knows its task."""
    is_early = item.run_at is not None and item.run_at > now
    return item.status == model.PENDING and is_early and item.hold is None


def shown(item: model.WorkItem, now: float) -> str:
    """The state of an item in the words of tables."""
    if item.status == model.PENDING:
        return DELAYED if is_delayed(item, now) else READY
    return SHOWN.get(item.status, item.status)


def values(criteria: model.ItemFilter, now: float) -> tuple[object, ...]:
    """The filter as parameters of a SQL statement."""
    older, newer = criteria.older_seconds, criteria.newer_seconds
    return (
        *(criteria.status, criteria.delayed, now, criteria.prefix, criteria.key, criteria.tenant),
        *(criteria.error, None if older is None else now - older),
        None if newer is None else now - newer,
    )


def source(criteria: model.ItemFilter) -> str:
    """What a SQL store looks through: the index of the keys, of the ids or of a status; "" for
    all items in order of arrival. Done items are in no index."""
    if criteria.key is not None:
        return "key"
    if criteria.prefix is not None:
        return "prefix"
    return "" if criteria.status in (None, model.DONE) else str(criteria.status)


def chosen(
    rows: Sequence[tuple[Any, str, Any]], limit: int
) -> tuple[list[tuple[Any, str]], str | None]:
    """Of one window, as (place, id, whether it fits): what to answer, and the id to go on after."""
    fitting = [(place, item_id) for place, item_id, is_one in rows if is_one]
    if len(fitting) >= limit:
        return fitting[:limit], fitting[limit - 1][1]
    return fitting, rows[-1][1] if len(rows) == WINDOW else None


def window(criteria: model.ItemFilter, limit: int) -> int:
    """How many items a step looks at: with nothing but a status, all of them fit."""
    return min(WINDOW, limit) if is_plain(criteria.replace(newest=False)) else WINDOW
