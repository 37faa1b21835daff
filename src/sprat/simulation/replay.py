"""Replay a trace: let time pass, and ask whoever sizes the fleet at every pass. Deterministic."""

from __future__ import annotations

import math

from sprat.core.histogram import GRAIN_SECONDS
from sprat.core.record import Record
from sprat.simulation.fleet import SimulatedFleet, Terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    from sprat.simulation.trace import Trace

    class Sizer(Protocol):
        """Who sizes the fleet: called every `poll_seconds` with all there is to know."""

        poll_seconds: float
        settle_seconds: float  # so long after the last event every pass is made,
        quiet_seconds: float  # then one so often, until something happens

        def poll(self, fleet: SimulatedFleet) -> None: ...

    Watcher = Callable[[SimulatedFleet], None]

TAIL_SECONDS = 3600.0  # a fleet that has not shrunk so long after the last job is counted as it is
TRIGGER_SECONDS = 1.0  # between two passes that jobs called for,
QUICK_TRIGGER_SECONDS = 0.05  # or a cold start, if that is shorter: a pass takes about as long


class ReplayResult(Record):
    """What a replay came to. Costs are worker-seconds, from launch to leave."""

    policy: str
    trace: str
    jobs: int
    paid_seconds: float
    useful_seconds: float
    wait_mean: float
    wait_p50: float
    wait_p95: float
    wait_p99: float
    wait_max: float
    wait_target: float | None = None
    late_share: float | None = None  # of the jobs that started later than the target
    ups: int = 0  # passes that launched workers
    downs: int = 0  # passes that drained some
    launches: int = 0
    peak_workers: int = 0
    interrupted: int = 0  # jobs that were not let finish: none, ever
    passes: int = 0
    seconds: float = 0.0  # until all was done and the fleet had left
    verdict: str | None = None  # why the target cannot be met, if the policy said so

    @property
    def cost(self) -> float:
        """Paid for each useful second: 1 is perfect."""
        return self.paid_seconds / self.useful_seconds if self.useful_seconds else 0.0

    @property
    def is_met(self) -> bool | None:
        """Whether 95 % of the jobs started within the target."""
        if self.wait_target is None:
            return None
        return self.wait_p95 <= self.wait_target + GRAIN_SECONDS


def replay(
    trace: Trace,
    sizer: Sizer,
    terms: Terms,
    *,
    wait_target: float | None = None,
    policy: str = "",
    watch: Watcher | None = None,
) -> ReplayResult:
    """The trace from its first job until all are done and the fleet has left."""
    fleet = SimulatedFleet(trace, terms)
    fleet.advance(0.0)  # what is there from the beginning is seen by the first pass
    between = min(TRIGGER_SECONDS, max(QUICK_TRIGGER_SECONDS, terms.cold_start_seconds))
    passes = 0
    tick = 0
    while not _is_over(fleet):
        sizer.poll(fleet)
        passes += 1
        if watch is not None:
            watch(fleet)
        tick = _next_tick(fleet, sizer, tick)
        at = tick * sizer.poll_seconds
        while terms.on_push:
            reached = fleet.advance(at, fleet.now + between)
            if reached >= at:
                break
            sizer.poll(fleet)
            passes += 1
        else:
            fleet.advance(at)
    if watch is not None:
        watch(fleet)
    made = _outcome(fleet, trace, policy or type(sizer).__name__, wait_target, passes)
    return made.replace(verdict=sizer.verdict(fleet)) if hasattr(sizer, "verdict") else made


def _is_over(fleet: SimulatedFleet) -> bool:
    return fleet.is_over or (fleet.done == fleet.jobs and fleet.now >= fleet.done_at + TAIL_SECONDS)


def _next_tick(fleet: SimulatedFleet, sizer: Sizer, tick: int) -> int:
    """The next pass; those are left out at which there would be nothing to decide."""
    if fleet.now < fleet.changed_at + sizer.settle_seconds:
        return tick + 1
    at = min(fleet.next_event(), fleet.now + sizer.quiet_seconds)
    return tick + 1 if at == math.inf else max(tick + 1, math.ceil(at / sizer.poll_seconds))


def _outcome(
    fleet: SimulatedFleet, trace: Trace, policy: str, wait_target: float | None, passes: int
) -> ReplayResult:
    staying = [*fleet.starting, *fleet.idle]
    paid = fleet.paid_seconds + sum(fleet.now - fleet.launched_at[one] for one in staying)
    return summary(
        fleet.waits,
        policy=policy,
        trace=trace.name,
        paid_seconds=paid,
        useful_seconds=trace.useful_seconds,
        wait_target=wait_target,
        ups=fleet.ups,
        downs=fleet.downs,
        launches=fleet.launches,
        peak_workers=fleet.peak,
        interrupted=fleet.started - fleet.done,
        passes=passes,
        seconds=fleet.now,
    )


def summary(waits: Iterable[float], *, wait_target: float | None, **facts: Any) -> ReplayResult:
    """An outcome with what the waits say in it."""
    ordered = sorted(waits)
    n = len(ordered)
    late = None
    if wait_target is not None:
        late = sum(wait > wait_target + GRAIN_SECONDS for wait in ordered) / n if n else 0.0
    return ReplayResult(
        jobs=n,
        wait_mean=sum(ordered) / n if n else 0.0,
        wait_p50=_at(ordered, 0.5),
        wait_p95=_at(ordered, 0.95),
        wait_p99=_at(ordered, 0.99),
        wait_max=_at(ordered, 1.0),
        wait_target=wait_target,
        late_share=late,
        **facts,
    )


def _at(ordered: list[float], q: float) -> float:
    """The value that the fraction q does not exceed."""
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)] if ordered else 0.0
