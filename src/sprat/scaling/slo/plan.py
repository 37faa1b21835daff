"""The slo policy where starts cost something: launches weighed against deadlines. Pure.

- A target longer than a cold start: the queue is the buffer, it costs nothing. For the items that
  wait it is asked whether the workers that there are, and those on the way, will have started them
  by their deadlines; as many are launched as that takes. Whoever has nothing to do leaves at once:
  to wait for work is dearer than to start again in time.
- A target of just a cold start: a launch is in time if it comes with the push. If late starts have
  taught that this is not enough, workers are kept.
- A target shorter than that: a worker that is launched when work waits comes too late, so some have
  to be there before: as many as had work lately, or have it now for longer (persistence.py), and a
  margin that is learned from what was late (learned_margin.py). Launches are for those who will
  have come by then (arrivals.py), behind those who wait. For how long a load is remembered, and how
  many are launched for what is late anyway, shadow_fleets.py finds out.
"""

from __future__ import annotations

import math

from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.core.record import Record
from sprat.scaling import sizing
from sprat.scaling.slo import (
    arrivals,
    cold_starts,
    estimates,
    learned_margin,
    persistence,
    queueing,
    reason,
    shadow_fleets,
)
from sprat.scaling.slo import outlook as outlooks
from sprat.scaling.slo.memory import LoadAverages, Memory, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.scaling.slo.memory import LearnedMargin, ShadowFleet, ShadowFleets
    from sprat.scaling.slo.outlook import Outlook
    from sprat.scaling.slo.target import Options
    from sprat.scaling.slo.variants import Variant

NAME = "slo"
NO_LOAD = 0.05  # items, on average: no worker is kept for that
# What a floor is above the load before late starts have taught more, in deviations. With a target
# above the cold start a floor is only the last resort.
TIGHT_MARGIN, BEHIND_MARGIN = -2.5, -0.75
# Part of the time that a launch leaves which is not used, for each deviation that late starts have
# taught, and at most: jobs end later than expected when others than before have begun.
SPARE, MOST_SPARE = 0.2, 0.5


def decide(
    seen: Snapshot, memory: Memory, settings: PoolSettings, own: Options, cold_start: float
) -> Decision:
    view = outlooks.outlook(seen, memory, settings, own, cold_start)
    made = sizing.decision(NAME, seen, settings, want(view, seen))
    return made.replace(memory=write(_noted(seen, memory, view, settings.max_workers)))


def _noted(seen: Snapshot, memory: Memory, view: Outlook, most: int) -> Memory:
    """The notes for the next decision: those that matter for this target."""
    own, cold_start = view.own, view.cold_start
    starts = cold_starts.noted(seen, memory.starts)
    runs = estimates.noted_service(seen, memory)
    if view.is_close and arrivals.is_brief(seen, memory):
        return memory.replace(starts=starts, runs=runs)
    after = Memory(starts=starts, runs=runs)
    if own.finish_seconds is not None:
        return after
    margin = learned_margin.noted(
        seen,
        memory,
        outlooks.lesson(own, cold_start),
        wait_seconds=own.wait_seconds,
        percentile=own.percentile,
    )
    if not view.is_close:
        return after.replace(margin=margin)
    loads = LoadAverages(fast=view.loads.fast, slow=view.loads.slow, at=seen.now)
    if not view.is_behind:
        return after.replace(margin=margin, loads=loads)
    shadows = _simulated(seen, memory, view, most)
    return after.replace(
        arrivals=arrivals.noted(seen, memory, cold_start),
        loads=loads,
        margin=_switched(margin, shadow_fleets.change(memory, shadows)),
        persistence=persistence.noted(seen, memory, cold_start),
        shadows=shadows,
    )


def _switched(margin: LearnedMargin, change: float) -> LearnedMargin:
    """The margin, if another way is followed that learned another one."""
    return margin.replace(margin=learned_margin.KEPT.bounded(margin.margin + change))


def _simulated(seen: Snapshot, memory: Memory, view: Outlook, most: int) -> ShadowFleets:
    """The simulated fleets, a pass later."""
    own = view.own

    def size(fleet: ShadowFleet, way: Variant) -> int:
        until = outlooks.caught_up(own, view.cold_start, way)
        coming = outlooks.coming_by(own, view.rates, way, until)
        theirs = view.replace(
            ready=math.floor(fleet.waiting),
            oldest=0.0,
            line=shadow_fleets.backlog(fleet, seen.now, coming),
            coming=coming,
            until=until,
            z=outlooks.caution_about_ends(own, fleet.margin),
            caution=fleet.margin,
            way=way,
            load=outlooks.expected_load(view.loads, way),
        )
        return min(sizes(theirs).workers, most)

    return shadow_fleets.noted(
        seen,
        memory,
        view.service,
        cold_start=view.cold_start,
        wait_seconds=own.wait_seconds,
        percentile=own.percentile,
        size=size,
    )


# -- sizes --------------------------------------------------------------------------------------


class Sizes(Record):
    workers: int
    least: int  # kept whether there is work or not
    more: int  # for deadlines


def sizes(view: Outlook) -> Sizes:
    line = view.line
    starting = len(line.arrivals)
    current = line.busy + line.free + starting
    least = floor(view)
    untaken = max(0, math.ceil(view.ready + view.coming) - line.free - starting)
    more = 0 if view.is_refused else min(_for_deadlines(view), untaken)
    stay = current if view.ready else line.busy
    workers = max(least, current + more if more else min(current, max(stay, least)))
    return Sizes(workers=workers, least=least, more=more)


def want(view: Outlook, seen: Snapshot) -> sizing.Want:
    workers, least, more = sizes(view)
    return sizing.Want(
        workers=workers,
        keep=workers,
        reason=reason.reason(view, seen, least, more),
        terms=reason.terms(view, least, more),
    )


def floor(view: Outlook) -> int:
    """The workers that are kept whether there is work or not."""
    load = view.expected_load
    if not view.is_close or load <= NO_LOAD:
        return 0
    margin = BEHIND_MARGIN if view.is_behind else TIGHT_MARGIN
    deviation = view.loads.deviation(view.way.memory, load, outlooks.taken_for_chance(view.way))
    return max(0, queueing.square_root_staffed(load, margin + view.caution, deviation))


def _for_deadlines(view: Outlook) -> int:
    """Launches so that each waiting item is started by its deadline."""
    if not view.ready:
        return 0
    return max(
        int(_is_stuck(view)),
        *(
            queueing.launches(
                view.line, view.service, items=items, at=at, cold_start=view.cold_start, z=view.z
            )
            for items, at in deadlines(view)
        ),
    )


def _is_stuck(view: Outlook) -> bool:
    """Whether an item is late and nobody is on the way: the jobs that run are unusually long."""
    is_late = view.own.finish_seconds is None and view.oldest > view.own.wait_seconds
    return is_late and not view.line.arrivals and not view.line.free


def deadlines(view: Outlook) -> list[tuple[float, float]]:
    """How many items have to be started until when: the first one, and all of them. Those that wait
    are taken to have come evenly since the first did. A deadline that no launch can meet is over:
    its item has to be gone when the first one that can be helped is due."""
    wait = view.own.wait_seconds
    if view.own.finish_seconds is not None:
        last = view.own.finish_seconds - view.oldest - min(view.service.mean, wait)
        return [(view.ready, max(last, view.cold_start))]
    if view.is_behind:
        return [(view.ready + view.coming, view.until)]
    spare = min(SPARE * max(0.0, view.caution), MOST_SPARE)
    wait -= spare * (wait - view.cold_start)
    if not view.oldest:
        return [(view.ready, wait)]
    first = max(wait - view.oldest, view.cold_start)
    share = (first - wait + view.oldest) / view.oldest
    urgent = min(view.ready, 1 + math.floor((view.ready - 1) * share))
    return [(urgent, first), (view.ready, wait)]
