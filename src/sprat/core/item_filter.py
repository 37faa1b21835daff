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


def checked(wanted: model.ItemFilter) -> model.ItemFilter:
    """The filter, or InvalidInput."""
    if wanted.status not in (None, *model.ITEM_STATUSES):
        raise InvalidInput(f"unknown status {wanted.status!r}")
    for name in ("prefix", "key", "tenant"):
        payload.label(getattr(wanted, name), name)
    for name in ("older_seconds", "newer_seconds"):
        if getattr(wanted, name) is not None:
            payload.seconds(getattr(wanted, name), name)
    text = wanted.error
    if text is not None and (not isinstance(text, str) or not 0 < len(text) <= MAX_TEXT):
        raise InvalidInput(f"the error to look for must be 1 to {MAX_TEXT} characters")
    if text is not None and "\0" in text:
        raise InvalidInput("no error has a zero character in it")
    return wanted


def is_plain(wanted: model.ItemFilter) -> bool:
    """Whether it is a status and nothing else: `items` answers that from an index."""
    return wanted == model.ItemFilter(status=wanted.status)


def fits(item: model.WorkItem, wanted: model.ItemFilter, now: float) -> bool:
    """Whether an item is one of those that are meant."""
    age = now - item.created_at
    return (
        wanted.status in (None, item.status)
        and (
            wanted.delayed is None
            or (item.status == model.PENDING and is_delayed(item, now) is wanted.delayed)
        )
        and item.id.startswith(wanted.prefix or "")
        and wanted.key in (None, item.key)
        and wanted.tenant in (None, item.tenant)
        and (wanted.error is None or wanted.error in (item.error or ""))
        and (wanted.older_seconds is None or age >= wanted.older_seconds)
        and (wanted.newer_seconds is None or age <= wanted.newer_seconds)
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


def values(wanted: model.ItemFilter, now: float) -> tuple[object, ...]:
    """The filter as parameters of a SQL statement."""
    older, newer = wanted.older_seconds, wanted.newer_seconds
    return (
        *(wanted.status, wanted.delayed, now, wanted.prefix, wanted.key, wanted.tenant),
        *(wanted.error, None if older is None else now - older),
        None if newer is None else now - newer,
    )


def source(wanted: model.ItemFilter) -> str:
    """What a SQL store looks through: the index of the keys, of the ids or of a status; "" for
    all items in order of arrival. Done items are in no index."""
    if wanted.key is not None:
        return "key"
    if wanted.prefix is not None:
        return "prefix"
    return "" if wanted.status in (None, model.DONE) else str(wanted.status)


def chosen(
    rows: Sequence[tuple[Any, str, Any]], limit: int
) -> tuple[list[tuple[Any, str]], str | None]:
    """Of one window, as (place, id, whether it fits): what to answer, and the id to go on after."""
    fitting = [(place, item_id) for place, item_id, is_one in rows if is_one]
    if len(fitting) >= limit:
        return fitting[:limit], fitting[limit - 1][1]
    return fitting, rows[-1][1] if len(rows) == WINDOW else None


def window(wanted: model.ItemFilter, limit: int) -> int:
    """How many items a step looks at: with nothing but a status, all of them fit."""
    return min(WINDOW, limit) if is_plain(wanted.replace(newest=False)) else WINDOW
