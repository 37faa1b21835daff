"""What the size of a fleet depends on: work, workers, and what was learned of both. Pure."""

from __future__ import annotations

import math

from sprat.core.record import Record
from sprat.scaling import sizing
from sprat.scaling.slo import arrivals, cold_starts, estimates, learned_margin, shadow_fleets
from sprat.scaling.slo.queueing import Backlog, Service
from sprat.scaling.slo.variants import Variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.model import PoolSettings, Snapshot
    from sprat.scaling.slo.memory import Memory
    from sprat.scaling.slo.target import Options

REACTION_SECONDS = 5.0  # a pass comes so much after what it answers, at the latest
# Deviations that ends of jobs are counted with caution, for each that the percentile is above the
# median. Less than 1, because an item is looked at many times before its deadline.
CAUTION = 0.55
CHANCE = 2.0  # deviations that a load is above its average though nothing has changed
MOST_Z = 3.0  # deviations that late starts add to the caution about ends
BEHIND_SHARE = 0.5  # of the wait, after the cold start: as soon can a launch make up for a rise


class Outlook(Record):
    """All that the size depends on."""

    own: Options
    ready: int
    oldest: float  # seconds that the first item has waited
    held: int = 0  # items that wait for their tenant: the first may be one of them
    line: Backlog
    service: Service
    cold_start: float
    z: float
    caution: float  # what late starts have taught
    way: Variant
    load: float
    loads: estimates.Loads  # as each memory has it
    rise: estimates.ExpectedRise = estimates.ExpectedRise()  # what a forecast adds
    rates: arrivals.Rates = arrivals.Rates()  # of items that come
    coming: float = 0.0  # items that have to be started besides those that wait
    until: float = 0.0  # when a launch that may come too late for what waits has made up for it
    missed: float | None = None  # the share of late starts, if it is more than may be

    @property
    def expected_load(self) -> float:
        """The load when a worker that is launched now is active."""
        return max(self.load + self.rise.more, self.rise.load)

    @property
    def is_behind(self) -> bool:
        """Whether a worker that is launched for a waiting item comes too late for it."""
        return is_tight(self.own, self.cold_start, 0.0)

    @property
    def is_close(self) -> bool:
        """Whether it may do so."""
        return is_tight(self.own, self.cold_start)

    @property
    def is_refused(self) -> bool:
        """Whether idle workers leave ready items alone: more workers would do the same."""
        is_old = self.oldest > REACTION_SECONDS and not self.held
        return self.line.free > 0 and self.ready > 0 and is_old


def is_tight(own: Options, cold_start: float, reaction: float = REACTION_SECONDS) -> bool:
    """Whether a worker launched this many seconds after an item arrived starts it too late."""
    return own.finish_seconds is None and own.wait_seconds < cold_start + reaction


def lesson(own: Options, cold_start: float) -> learned_margin.Rule:
    """How late starts teach caution."""
    if is_tight(own, cold_start, 0.0):
        return learned_margin.KEPT
    return learned_margin.JUST_LAUNCHED if is_tight(own, cold_start) else learned_margin.LAUNCHED


def outlook(
    seen: Snapshot, memory: Memory, settings: PoolSettings, own: Options, cold_start: float
) -> Outlook:
    busy = sizing.busy(seen)
    learned = learned_margin.margin(memory, lesson(own, cold_start))
    service = estimates.service(seen, memory, guess_seconds=own.wait_seconds)
    mean = service.mean
    if settings.max_jobs == 1:
        service = service.replace(mean=math.inf)  # who ends a job takes no other
    is_behind, is_close = is_tight(own, cold_start, 0.0), is_tight(own, cold_start)
    rates = arrivals.rates(seen, memory, cold_start) if is_behind else arrivals.Rates()
    way = shadow_fleets.followed(memory)
    until = caught_up(own, cold_start, way)
    coming = coming_by(own, rates, way, until)
    kept = estimates.kept_loads(memory) if is_close and arrivals.is_brief(seen, memory) else None
    loads = kept or estimates.loads(
        seen,
        memory,
        service_mean=mean,
        wait_seconds=own.wait_seconds,
        cold_start_seconds=cold_start,
        offered=arrivals.offered(seen, memory.arrivals, mean) if is_behind else None,
    )
    line = Backlog(
        busy=busy,
        free=seen.active - busy,
        arrivals=cold_starts.expected(seen, cold_start),
        noise=coming,
    )
    return Outlook(
        own=own,
        ready=seen.claimable,
        oldest=seen.oldest_ready_seconds or 0.0,
        held=seen.held,
        line=line,
        service=service,
        cold_start=cold_start,
        z=caution_about_ends(own, learned),
        caution=learned,
        way=way,
        load=expected_load(loads, way) if is_behind else loads.expected(way.memory, 0.0),
        loads=loads,
        rise=estimates.expected_rise(memory.forecast if is_behind else None, seen.now, cold_start),
        rates=rates,
        coming=coming,
        until=until,
        missed=learned_margin.missed(seen, memory, own.percentile) if is_close else None,
    )


def caught_up(own: Options, cold_start: float, way: Variant) -> float:
    """When a launch that comes too late for what waits has made up for it."""
    late = way.patience * cold_start if way.patience else BEHIND_SHARE * own.wait_seconds
    return cold_start + late


def expected_load(loads: estimates.Loads, way: Variant) -> float:
    return loads.expected(way.memory, taken_for_chance(way))


def taken_for_chance(way: Variant) -> float | None:
    """Deviations. Who is calm takes every burst for that."""
    return None if way.is_calm else CHANCE


def coming_by(own: Options, rates: arrivals.Rates, way: Variant, until: float) -> float:
    """So many come whose time is over by then: they have to be started as well."""
    rate = rates.steady if way.is_calm else rates.expected
    return rate * max(0.0, until - own.wait_seconds)


def caution_about_ends(own: Options, learned: float) -> float:
    return CAUTION * deviations(own.percentile / 100.0) + min(max(0.0, learned), MOST_Z)


def deviations(q: float) -> float:
    """The quantile of the normal distribution, to a hundredth, from the median up (Shore)."""
    return 5.5556 * (1.0 - math.pow((1.0 - q) / q, 0.1186))
