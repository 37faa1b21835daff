"""A job in words: its state, its call, its error, its times."""

from __future__ import annotations

from sprat.cli import blockers
from sprat.cli.output import duration, one_line
from sprat.core import item_filter, model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LABELS = {"transients": "transient failures"}
MOMENTS = ("created_at", "run_at", "claimed_at", "finished_at")
HIDDEN = ("token", "hold", "error", "max_retries", *MOMENTS)


def row(item: model.WorkItem, now: float) -> tuple[str, ...]:
    """The columns of a list, after the id."""
    tries = f"{item.attempts}/{item.max_retries}"
    return state(item, now), tries, duration(max(0.0, now - item.created_at)), about(item)


def state(item: model.WorkItem, now: float) -> str:
    return "ready (held)" if item.hold is not None else item_filter.shown(item, now)


def about(item: model.WorkItem) -> str:
    """What the list has room for: why it waits or failed, else what it does."""
    if item.hold is not None:
        return f"{item.task}: {item.hold}"
    if item.error and item.status != model.DONE:
        return item.error.partition("\n")[0]
    return call(item) or one_line(item.data)


def call(item: model.WorkItem) -> str:
    """The task with its arguments as Python writes them; '' for a job without a task."""
    if item.task is None:
        return ""
    from sprat.tasks.source import pushed

    args, kwargs = pushed(item.data)
    values = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
    return one_line(f"{item.task.rpartition(':')[2]}({', '.join(values)})")


def facts_of(
    item: model.WorkItem, now: float, max_transient: int | None
) -> Iterator[tuple[str, object]]:
    """A job in full, but for its error."""
    told: dict[str, Any] = {
        "status": f"ready (held: {item.hold})" if item.hold else state(item, now),
        "attempts": f"{item.attempts} of {item.max_retries}",
        "transients": blockers.transients(item, max_transient) if item.transients else "",
    }
    for name, value in (item.as_dict() | told).items():
        if name == "data" and item.task is not None:
            yield "call", call(item)
        elif name not in HIDDEN:
            yield LABELS.get(name, name.replace("_", " ")), value
    for name in MOMENTS:
        yield name.removesuffix("_at"), moment(getattr(item, name), now)


def moment(at: float | None, now: float) -> str:
    """A time as a distance from now, and by the calendar."""
    if at is None:
        return ""
    import time

    distance = f"in {duration(at - now)}" if at > now else f"{duration(now - at)} ago"
    return f"{distance} ({time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime(at))})"
