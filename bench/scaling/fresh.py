"""Families of load whose every parameter is drawn from a seed: to make the policy on some seeds,
and to judge it once on others.

A name is a family and a seed: `bursts-901`. Load, job lengths, bursts and pauses differ from seed
to seed by a factor of ten and more, so a rule that fits one seed need not fit another.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable, Iterable

from bench.scaling.synthetic import HOUR, Rate, generate
from sprat.simulation.trace import Trace

MOST_JOBS = 12_000  # then it ends: a hundred rules are tried on each

Source = random.Random
Jobs = Iterable[tuple[float, float]]  # arrival and running time of each


def make(name: str) -> Trace:
    family = name.rsplit("-", 1)[0]
    jobs = sorted(FAMILIES[family](name, Source(f"parameters {name}")))[:MOST_JOBS]
    return Trace(
        name=name,
        arrivals=array("d", (round(at, 3) for at, _ in jobs)),
        services=array("d", (round(max(0.05, ran), 3) for _, ran in jobs)),
    )


def between(source: Source, low: float, high: float) -> float:
    """Evenly on a logarithmic scale."""
    return low * math.exp(source.random() * math.log(high / low))


def poisson(name: str, source: Source, rate: Rate, *, load: float, seconds: float) -> Jobs:
    """Jobs at a rate between 0 and 1, scaled so that its peak keeps about `load` workers busy."""
    mean, sigma = between(source, 4.0, 120.0), source.uniform(0.2, 1.4)
    peak = load / mean
    made = generate(
        name, 0, seconds=seconds, rate=lambda at: peak * rate(at), peak=peak, mean=mean, sigma=sigma
    )
    return zip(made.arrivals, made.services, strict=True)


def spans(source: Source, *, on: float, off: float, seconds: float) -> list[tuple[float, float]]:
    """Stretches of random length with pauses of random length between them."""
    found, at = [], source.expovariate(1.0 / off)
    while at < seconds:
        end = at + source.expovariate(1.0 / on)
        found.append((at, end))
        at = end + source.expovariate(1.0 / off)
    return found


def inside(stretches: list[tuple[float, float]], at: float) -> bool:
    return any(begin <= at < end for begin, end in stretches)


# -- the families -------------------------------------------------------------------------------


def bursts(name: str, source: Source) -> Jobs:
    """A quiet load, and many times as much for minutes, now and then."""
    seconds, base = 10 * HOUR, between(source, 0.03, 0.3)
    on, off = between(source, 60.0, 900.0), between(source, 900.0, 7200.0)
    high = spans(source, on=on, off=off, seconds=seconds)
    load = between(source, 5.0, 40.0)
    return poisson(
        name, source, lambda at: 1.0 if inside(high, at) else base, load=load, seconds=seconds
    )


def spells(name: str, source: Source) -> Jobs:
    """Something or nothing at all."""
    seconds = 14 * HOUR
    on, off = between(source, 200.0, 5000.0), between(source, 200.0, 5000.0)
    some = spans(source, on=on, off=off, seconds=seconds)
    load = between(source, 2.0, 30.0)
    return poisson(
        name, source, lambda at: 1.0 if inside(some, at) else 0.0, load=load, seconds=seconds
    )


def noisy_day(name: str, source: Source) -> Jobs:
    """A wave a day, with noise that lasts for minutes."""
    seconds, low = 48 * HOUR, source.uniform(0.02, 0.3)
    step, pull, size = between(source, 60.0, 900.0), 0.8, source.uniform(0.1, 0.6)
    noise, level = [], 0.0
    for _ in range(int(seconds / step) + 1):
        level = pull * level + source.gauss(0.0, size) * math.sqrt(1.0 - pull * pull)
        noise.append(math.exp(level))

    def rate(at: float) -> float:
        wave = low + (1.0 - low) * (0.5 - 0.5 * math.cos(2 * math.pi * at / (24 * HOUR)))
        return min(1.0, 0.5 * wave * noise[int(at / step)])

    return poisson(name, source, rate, load=between(source, 4.0, 25.0), seconds=seconds)


def batches(name: str, source: Source) -> Jobs:
    """Batches that come at once: most of a few jobs, some of very many."""
    mean, sigma = between(source, 4.0, 60.0), source.uniform(0.2, 1.2)
    gap, shape = between(source, 60.0, 1200.0), source.uniform(1.2, 2.0)
    shift, at = math.log(mean) - sigma * sigma / 2, 0.0
    while at < 12 * HOUR:
        for _ in range(min(150, int(source.paretovariate(shape)))):
            yield at + source.uniform(0.0, 2.0), source.lognormvariate(shift, sigma)
        at += source.expovariate(1.0 / gap)


def drift(name: str, source: Source) -> Jobs:
    """A load that grows for hours, or shrinks, or both."""
    seconds, low, turn = 12 * HOUR, source.uniform(0.05, 0.4), source.uniform(0.1, 1.0)

    def rate(at: float) -> float:
        share = at / seconds
        height = share / turn if share < turn else (1.0 - share) / (1.0 - turn)
        return low + (1.0 - low) * height

    return poisson(name, source, rate, load=between(source, 3.0, 40.0), seconds=seconds)


def mixture(name: str, source: Source) -> Jobs:
    """Short jobs all the time, and spells of long ones."""
    seconds = 10 * HOUR
    some = spans(
        source,
        on=between(source, 300.0, 2000.0),
        off=between(source, 600.0, 4000.0),
        seconds=seconds,
    )
    short = poisson(
        f"{name} short", source, lambda at: 1.0, load=between(source, 0.5, 8.0), seconds=seconds
    )
    long = poisson(
        f"{name} long",
        source,
        lambda at: 1.0 if inside(some, at) else 0.0,
        load=between(source, 2.0, 20.0),
        seconds=seconds,
    )
    return (*short, *((at, 5.0 * ran) for at, ran in long))


def crons(name: str, source: Source) -> Jobs:
    """Many small schedules, each by its own clock, with some jitter; and a few jobs besides."""
    seconds = 16 * HOUR
    mean, sigma = between(source, 5.0, 90.0), source.uniform(0.2, 1.0)
    shift = math.log(mean) - sigma * sigma / 2
    for _ in range(source.randint(2, 5)):
        period = source.choice((300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0))
        jobs, jitter = int(between(source, 2, 40)), between(source, 1.0, 60.0)
        at = source.uniform(0.0, period)
        while at < seconds:
            for _ in range(jobs):
                yield at + source.uniform(0.0, jitter), source.lognormvariate(shift, sigma)
            at += period
    yield from poisson(
        name, source, lambda at: 1.0, load=between(source, 0.2, 4.0), seconds=seconds
    )


def wandering(name: str, source: Source) -> Jobs:
    """A load that goes up and down at random, from minute to minute."""
    seconds, step = 10 * HOUR, 60.0
    size, level, levels = source.uniform(0.05, 0.35), 0.0, []
    for _ in range(int(seconds / step) + 1):
        level = 0.98 * level + source.gauss(0.0, size)
        levels.append(math.exp(level))
    top = max(levels)
    return poisson(
        name,
        source,
        lambda at: levels[int(at / step)] / top,
        load=between(source, 6.0, 50.0),
        seconds=seconds,
    )


FAMILIES: dict[str, Callable[[str, Source], Jobs]] = {
    "bursts": bursts,
    "spells": spells,
    "noisy_day": noisy_day,
    "batches": batches,
    "drift": drift,
    "mixture": mixture,
    "crons": crons,
    "wandering": wandering,
}


def named(seeds: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"{family}-{seed}" for seed in seeds for family in FAMILIES)
