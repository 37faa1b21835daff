"""What the user of the slo policy states, and what is wrong with it. Pure."""

from __future__ import annotations

from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings
from sprat.core.record import Record
from sprat.scaling import options

SHORTEST_TARGET_SECONDS = 0.001


class Options(Record):
    wait_seconds: float = 30.0
    percentile: float = 95.0  # so many of 100 jobs start within the wait
    finish_seconds: float | None = None  # instead: every job is done this long after its push
    cold_start_seconds: float | None = None  # None: as measured
    price_per_worker_hour: float | None = None
    budget_per_hour: float | None = None


def _percentile(value: object, name: str) -> None:
    options.number(99.99)(value, name)
    if float(value) < 50.0:  # type: ignore[arg-type]  # checked to be a number
        raise InvalidInput(f"{name} must be a number from 50 to 99.99, not {value!r}")


def _some(check: options.Check) -> options.Check:
    def check_some(value: object, name: str) -> None:
        check(value, name)
        if not value:
            raise InvalidInput(f"{name} must be more than 0")

    return check_some


def _target(value: object, name: str) -> None:
    options.seconds(value, name)
    if float(value) < SHORTEST_TARGET_SECONDS:  # type: ignore[arg-type]  # checked to be a number
        raise InvalidInput(f"{name} must be at least {SHORTEST_TARGET_SECONDS:g} seconds")


CHECKS: dict[str, options.Check] = {
    "wait_seconds": _target,
    "percentile": _percentile,
    "finish_seconds": options.optional(_target),
    "cold_start_seconds": options.optional(options.seconds),
    "price_per_worker_hour": options.optional(_some(options.number(1e9))),
    "budget_per_hour": options.optional(options.number(1e12)),
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
