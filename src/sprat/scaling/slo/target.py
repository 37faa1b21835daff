"""What the user of the slo policy states, and what is wrong with it. Pure."""

from __future__ import annotations

from sprat.core import fields
from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings
from sprat.core.record import Record

SHORTEST_TARGET_SECONDS = 0.001


class Options(Record):
    wait_seconds: float = 30.0
    percentile: float = 95.0  # so many of 100 jobs start within the wait
    finish_seconds: float | None = None  # instead: every job is done this long after its push
    cold_start_seconds: float | None = None  # None: as measured
    price_per_worker_hour: float | None = None
    budget_per_hour: float | None = None


TARGET = fields.at_least(SHORTEST_TARGET_SECONDS, fields.seconds())

FIELDS = {
    "wait_seconds": TARGET.means("the target: jobs start within it"),
    "percentile": fields.number(50, 99.99).means("this many of 100 jobs do"),
    "finish_seconds": fields.optional(TARGET).means(
        "instead of a wait: every job is done this many seconds after its push"
    ),
    "cold_start_seconds": fields.optional(fields.seconds()).means(
        "from a launch until the worker takes jobs; null: as measured"
    ),
    "price_per_worker_hour": fields.optional(fields.more_than_zero(fields.number(0, 1e9))).means(
        "decisions report what the fleet costs"
    ),
    "budget_per_hour": fields.optional(fields.number(0, 1e12)).means(
        "at most as many workers as that pays for"
    ),
}


def check(settings: PoolSettings) -> None:
    """Refuse what contradicts itself."""
    own = Options(**settings.policy_options)
    if "wait_seconds" in settings.policy_options and own.finish_seconds is not None:
        raise InvalidInput("state wait_seconds or finish_seconds, not both")
    if own.budget_per_hour is not None and own.price_per_worker_hour is None:
        raise InvalidInput("budget_per_hour needs price_per_worker_hour")
    affordable = maximum(own, settings)
    if settings.max_workers and affordable < max(1, settings.min_workers):
        raise InvalidInput(
            f"budget_per_hour {own.budget_per_hour:g} pays for {affordable} workers at "
            f"{own.price_per_worker_hour:g} an hour each, {max(1, settings.min_workers)} are needed"
        )
    finish, start = own.finish_seconds, own.cold_start_seconds
    if finish is not None and start is not None and finish <= start:
        raise InvalidInput(
            f"finish_seconds {finish:g} cannot be met: a worker takes {start:g} s to start"
        )


def maximum(own: Options, settings: PoolSettings) -> int:
    """The largest fleet that the settings and the budget allow."""
    if own.budget_per_hour is None or not own.price_per_worker_hour:
        return settings.max_workers
    return min(settings.max_workers, int(own.budget_per_hour / own.price_per_worker_hour + 1e-9))
