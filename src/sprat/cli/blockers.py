"""What keeps jobs waiting, in sentences: pauses, unknown tasks and transient failures."""

from __future__ import annotations

from sprat.cli.output import duration, number, one_line
from sprat.core import model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from sprat.store.pool import WorkPool

MOST_READ = 100  # waiting jobs that are read to find transient failures
CLOSE = 0.8  # of max_transient: from here on `sprat doctor` warns


def fields(seen: model.Snapshot) -> dict[str, Any]:
    """What `status --json` and `explain --json` have in common."""
    names = ("paused", "paused_seconds", "pause_reason", "parked")
    return {name: getattr(seen, name) for name in names}


def pause(seconds: float | None, reason: str | None) -> str:
    """A pause with its end and its reason."""
    end = "until `sprat resume`" if seconds is None else f"for {duration(seconds)} more"
    return f"paused {end}" + (f": {one_line(reason)}" if reason else "")


def held(parked: Mapping[str, int]) -> Iterator[str]:
    """One sentence per task that no worker knows."""
    for task, jobs in sorted(parked.items()):
        verb = "is" if jobs == 1 else "are"
        yield f"{number(jobs, 'job')} {verb} held: no worker knows task {one_line(task)}"


def retrying(pool: WorkPool, counts: model.Counts) -> list[model.WorkItem]:
    """The jobs that wait after transient failures, most failures first. Only the oldest
    `MOST_READ` waiting jobs are read, and none while no job is delayed."""
    if not counts.delayed:
        return []
    waiting = pool.items(model.PENDING, limit=MOST_READ)
    failed = [item for item in waiting if item.transients]
    return sorted(failed, key=lambda item: -item.transients)


def transients(item: model.WorkItem, max_transient: int | None) -> str:
    bound = ", without a bound" if max_transient is None else f" of {max_transient}"
    return f"{item.transients}{bound}"


def is_close(item: model.WorkItem, max_transient: int | None) -> bool:
    """Whether the job's next transient failures cost attempts, or do already."""
    return max_transient is not None and item.transients >= CLOSE * max_transient
