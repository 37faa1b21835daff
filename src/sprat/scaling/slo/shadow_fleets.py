"""Simulated fleets beside the real one, to find out which way of sizing is the cheapest. Pure.

Who keeps workers for the load of the last minutes forgets a batch before the next one comes; who
keeps them for that of the last half hour pays for what is over. Who launches for what is late
anyway is soon in time again; who waits for those that there are saves the starts, and who is calm
does not even take a burst for a rise: it is sized for bursts before they come. What is cheaper
depends on the load. So beside the fleet that there is, one is simulated for each way: it gets the
items that come, ends as large a share of its jobs as really end, is sized by the same rule, and
learns its own margin from what would have been late. The cheapest of those that would have been in
time is followed.
"""

from __future__ import annotations

import math

from sprat.core.record import Record
from sprat.scaling.slo import arrivals, learned_margin, queueing, variants
from sprat.scaling.slo.memory import ShadowFleet, ShadowFleets, ShadowLaunch
from sprat.scaling.slo.queueing import Backlog, Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sprat.core.model import Snapshot
    from sprat.scaling.slo.memory import Memory
    from sprat.scaling.slo.variants import Variant

FADE = 0.98  # of what a fleet came to before, a window: a day is forgotten in a day
# Of the usual one's cost: then another is followed, and until when.
BETTER, STILL_BETTER = 0.9, 0.96
LATE_COST = 1.0  # times the cost, if twice as many are late as may be; and so on
MOST_LATE = 4.0  # times as many as may be: beyond, nobody is better than another
CALM_AFTER_SECONDS = 7200.0  # before, it may be the cheapest only because no burst has come yet
LAUNCHES = 10  # that are told apart during a cold start


class Since(Record):
    """What happened since the last pass: how many items came, and how many jobs ended for each
    worker that had work."""

    now: float
    seconds: float
    came: int
    ends: float


# -- one fleet ----------------------------------------------------------------------------------


def backlog(fleet: ShadowFleet, now: float, noise: float = 0.0) -> Backlog:
    """The fleet's workers, as queueing.py counts them."""
    coming = (max(0.0, launch.at - now) for launch in fleet.starting for _ in range(launch.workers))
    free = fleet.active - fleet.busy
    return Backlog(busy=fleet.busy, free=free, arrivals=tuple(coming), noise=noise)


def cost(fleet: ShadowFleet, allowed: float) -> float:
    """What was paid for it, and more if it was late."""
    share = fleet.late_before / fleet.came_before if fleet.came_before else 0.0
    return fleet.paid_before * (1.0 + LATE_COST * max(0.0, min(share / allowed, MOST_LATE) - 1))


def advanced(
    fleet: ShadowFleet, since: Since, service: Service, wait_seconds: float
) -> ShadowFleet:
    """What becomes of it meanwhile. Of those who came, so many are late as the fleet does not reach
    within the wait."""
    items = fleet.items + since.came
    ended = min(items, since.ends * min(items, fleet.active))
    here = sum(launch.workers for launch in fleet.starting if launch.at <= since.now)
    moved = fleet.replace(
        active=fleet.active + here,
        items=round(items - ended, 3),
        starting=tuple(launch for launch in fleet.starting if launch.at > since.now),
        came=fleet.came + since.came,
        paid=round(fleet.paid + fleet.size * since.seconds, 3),
    )
    if not since.came or not moved.waiting:
        return moved
    reach = queueing.reach(backlog(moved, since.now), service, at=wait_seconds, z=0.0)
    late = min(float(since.came), max(0.0, moved.waiting - reach))
    return moved.replace(late=round(moved.late + late, 3)) if late else moved


def resized(fleet: ShadowFleet, wanted: int, now: float, cold_start: float) -> ShadowFleet:
    """Launch, or have those leave who have not come yet, then the idle."""
    more, starting = wanted - fleet.size, list(fleet.starting)
    if not more:
        return fleet
    if more > 0:
        at = now + cold_start
        if starting and at - starting[-1].at < cold_start / LAUNCHES:
            more += starting.pop().workers  # as good as the same moment
        launch = ShadowLaunch(at=round(at, 3), workers=more)
        return fleet.replace(starting=(*starting, launch))
    while more < 0 and starting:
        launch = starting.pop()
        more += launch.workers
        if more > 0:
            starting.append(launch.replace(workers=more))
    leave = min(max(0, -more), fleet.active - fleet.busy)
    return fleet.replace(starting=tuple(starting), active=fleet.active - leave)


def learned(fleet: ShadowFleet, rule: learned_margin.Rule, percentile: float) -> ShadowFleet:
    """At the end of a window."""
    usual = max(fleet.came, learned_margin.FADE * fleet.usual)
    steps = learned_margin.steps(rule, fleet.late, fleet.came, usual, percentile)
    return ShadowFleet(
        margin=round(rule.moved(fleet.margin, steps), 4),
        usual=round(usual, 3),
        active=fleet.active,
        items=fleet.items,
        starting=fleet.starting,
        late_before=round(FADE * fleet.late_before + fleet.late, 3),
        came_before=round(FADE * fleet.came_before + fleet.came, 3),
        paid_before=round(FADE * fleet.paid_before + fleet.paid, 3),
    )


# -- all of them --------------------------------------------------------------------------------


def followed(memory: Memory) -> Variant:
    """The way that the real fleet is sized."""
    return variants.WAYS[memory.shadows.way if memory.shadows else variants.USUAL]


def noted(
    seen: Snapshot,
    memory: Memory,
    service: Service,
    *,
    cold_start: float,
    wait_seconds: float,
    percentile: float,
    size: Callable[[ShadowFleet, Variant], int],
) -> ShadowFleets:
    """The note for the next decision. `size` returns how many workers a fleet is to have that is
    sized in a way."""
    before = memory.shadows
    if before is None:
        fleets = (ShadowFleet(),) * len(variants.WAYS)
        return ShadowFleets(way=variants.USUAL, at=seen.now, fleets=fleets)
    since = _since(seen, memory, seen.now - before.at, service)
    rule = learned_margin.aimed(seen, memory, learned_margin.KEPT, percentile)
    is_due = learned_margin.is_due(seen, memory)
    after = []
    for variant, fleet in zip(variants.WAYS, before.fleets, strict=True):
        moved = advanced(fleet, since, service, wait_seconds)
        moved = resized(moved, size(moved, variant), seen.now, cold_start)
        after.append(learned(moved, rule, percentile) if is_due else moved)
    way = before.way
    if is_due and learned_margin.is_known(seen, memory):
        is_tried = learned_margin.learned_for(seen, memory) >= CALM_AFTER_SECONDS
        ways = [n for n, variant in enumerate(variants.WAYS) if is_tried or not variant.is_calm]
        way = _cheapest(after, ways, before.way, percentile)
    return ShadowFleets(way=way, at=seen.now, fleets=after)


def change(memory: Memory, after: ShadowFleets) -> float:
    """By how much the margin differs because another way is followed from now on."""
    before = memory.shadows.way if memory.shadows else variants.USUAL
    return after.fleets[after.way].margin - after.fleets[before].margin


def _since(seen: Snapshot, memory: Memory, seconds: float, service: Service) -> Since:
    came, ended, had_work = arrivals.moved(seen, memory.arrivals)
    if had_work:
        ends = ended / had_work
    else:
        ends = 1.0 - math.exp(-seconds / service.mean) if service.mean > 0.0 else 1.0
    return Since(now=seen.now, seconds=max(0.0, seconds), came=came, ends=ends)


def _cheapest(
    fleets: Sequence[ShadowFleet], ways: Sequence[int], before: int, percentile: float
) -> int:
    """The cheapest of these ways, if it is clearly cheaper than the usual one; one that is followed
    stays for less."""
    costs = [cost(fleet, learned_margin.allowed(percentile)) for fleet in fleets]
    usual = costs[variants.USUAL]
    best = min(ways, key=costs.__getitem__)
    stays = costs[before] < STILL_BETTER * usual
    if costs[best] < min(BETTER * usual, STILL_BETTER * costs[before] if stays else usual):
        return best
    return before if stays else variants.USUAL
