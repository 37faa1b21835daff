"""The fixed policy: always so many workers. The number is minimum and maximum in one, so a surplus
is drained even where all are busy; each finishes its job."""

from __future__ import annotations

from sprat.core import fields
from sprat.core.errors import InvalidInput
from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.core.record import Record
from sprat.scaling import sizing

NAME = "fixed"


class Options(Record):
    workers: int | None = None  # None: the pool's max_workers


FIELDS = {
    "workers": fields.optional(fields.workers()).means(
        "minimum and maximum in one; null: `max_workers`"
    )
}


def check(settings: PoolSettings) -> None:
    own = Options(**settings.policy_options)
    if own.workers is not None and not _within(own.workers, settings):
        bounds = f"min_workers {settings.min_workers} and max_workers {settings.max_workers}"
        raise InvalidInput(f"workers {own.workers} is not between {bounds}")


def _within(workers: int, settings: PoolSettings) -> bool:
    return settings.min_workers <= workers <= settings.max_workers


def decide(seen: Snapshot, settings: PoolSettings) -> Decision:
    own = Options(**settings.policy_options)
    most = settings.max_workers
    workers = most if own.workers is None else min(own.workers, most)  # a flag may lower it
    return sizing.decision(
        NAME,
        seen,
        settings.replace(min_workers=workers, max_workers=workers),
        sizing.Want(workers=workers, reason=f"fixed at {workers}"),
    )
