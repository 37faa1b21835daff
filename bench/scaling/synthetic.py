"""Synthetic load, seeded: everybody gets the same. Arrivals by thinning a Poisson process."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable

from sprat.simulation.trace import Trace

HOUR, DAY = 3600.0, 86400.0

Rate = Callable[[float], float]  # jobs a second at a moment


def generate(
    name: str, seed: int, *, seconds: float, rate: Rate, peak: float, mean: float, sigma: float
) -> Trace:
    """`mean` and `sigma` are those of the lognormal service time; sigma 0 makes it constant."""
    source = random.Random(f"{name} {seed}")
    arrivals, services = array("d"), array("d")
    shift = math.log(mean) - sigma * sigma / 2
    at = source.expovariate(peak)
    while at < seconds:
        if source.random() * peak < rate(at):
            arrivals.append(round(at, 3))
            services.append(round(max(0.05, source.lognormvariate(shift, sigma)), 3))
        at += source.expovariate(peak)
    return Trace(name=name, arrivals=arrivals, services=services)


def steady(per_second: float) -> Rate:
    return lambda at: per_second


def daily(low: float, high: float, *, peaks: int = 1) -> Rate:
    """A day's wave; with two peaks, one before noon and one after it."""
    middle, half = (low + high) / 2, (high - low) / 2
    return lambda at: middle - half * math.cos(2 * math.pi * peaks * at / DAY)


def weekdays(inner: Rate, weekend_share: float) -> Rate:
    return lambda at: inner(at) * (weekend_share if int(at // DAY) % 7 >= 5 else 1.0)


def flash(base: float, times: float, begins: tuple[float, ...], seconds: float) -> Rate:
    """So many times the base, all at once, for a while."""
    return lambda at: base * (times if any(b <= at < b + seconds for b in begins) else 1.0)


def surge(base: float, times: float, begins: tuple[float, ...], decay: float) -> Rate:
    """All at once, then less and less."""

    def rate(at: float) -> float:
        return base + sum(
            base * times * math.exp(-(at - begin) / decay) for begin in begins if at >= begin
        )

    return rate


def on_off(per_second: float, on: float, off: float) -> Rate:
    return lambda at: per_second if at % (on + off) < on else 0.0


def random_on_off(per_second: float, on: float, off: float, *, seed: int, seconds: float) -> Rate:
    """Spells of random length."""
    source = random.Random(f"spells {seed}")
    spells: list[tuple[float, float]] = []
    at = 0.0
    while at < seconds:
        end = at + source.expovariate(1 / on)
        spells.append((at, end))
        at = end + source.expovariate(1 / off)
    return lambda at: per_second if any(b <= at < e for b, e in spells) else 0.0
