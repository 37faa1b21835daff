"""Fleets that are only imagined, to find out which way of sizing is the cheapest. Pure.

Who keeps workers for the load of the last minutes forgets a batch before the next one comes; who
keeps them for that of the last half hour pays for what is over. Who launches for what is late
anyway is soon in time again; who waits for those that there are saves the starts, and who is calm
does not even take a burst for a rise: it is sized for bursts before they come. What is cheaper
depends on the load. So beside the fleet that there is, one is imagined for each way: it gets the
items that come, ends as large a share of its jobs as really end, is sized by the same rule, and
learns its own margin from what would have been late. The cheapest of those that would have been in
time is followed.
"""

from __future__ import annotations

import math

from sprat.core.record import Record
from sprat.scaling.slo import arrivals, learned_margin, queueing
from sprat.scaling.slo.queueing import Backlog, Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from sprat.core.model import Snapshot

FADE = 0.98  # of what a fleet came to before, a window: a day is forgotten in a day
# Of the usual one's cost: then another is followed, and until when.
BETTER, STILL_BETTER = 0.9, 0.96
LATE_COST = 1.0  # times the cost, if twice as many are late as may be; and so on
MOST_LATE = 4.0  # times as many as may be: beyond, nobody is better than another
CALM = 4.0  # cold starts of patience
CALM_AFTER_SECONDS = 7200.0  # before, it may be the cheapest only because no burst has come yet
LAUNCHES = 10  # that are told apart during a cold start
NAME = "imagined"


class Variant(Record):
    """How a fleet is sized."""

    memory: int  # how long a load is remembered: a place in estimates.MEMORIES
    patience: float  # cold starts until what is late is made up for; 0: as soon as can be

    @property
    def is_calm(self) -> bool:
        """Whether what came in the last moments is taken for a burst that is over soon."""
        return self.patience >= CALM


# For each memory. Who forgets a burst before the next one cannot be calm.
PATIENCES = ((0.0, 1.0), *((0.0, 1.0, CALM),) * 3)
WAYS = tuple(
    Variant(memory=memory, patience=patience)
    for memory, patiences in enumerate(PATIENCES)
    for patience in patiences
)
USUAL = WAYS.index(Variant(memory=1, patience=0.0))  # the one that is tried first


class ShadowFleet(Record):
    """As far as it matters. What it came to is counted in this window, and before."""

    margin: float = 0.0
    usual: float = 0.0  # items of a window
    active: int = 0
    items: float = 0.0  # that wait or run
    starting: Sequence[Sequence[float]] = ()  # how many come when
    late: float = 0.0
    came: float = 0.0
    paid: float = 0.0
    late_before: float = 0.0
    came_before: float = 0.0
    paid_before: float = 0.0

    @property
    def waiting(self) -> float:
        return max(0.0, self.items - self.active)

    @property
    def busy(self) -> int:
        return min(self.active, math.ceil(self.items))

    @property
    def size(self) -> int:
        return self.active + sum(int(n) for _, n in self.starting)

    def line(self, now: float, noise: float = 0.0) -> Backlog:
        coming = (max(0.0, at - now) for at, n in self.starting for _ in range(int(n)))
        free = self.active - self.busy
        return Backlog(busy=self.busy, free=free, arrivals=tuple(coming), noise=noise)

    def cost(self, allowed: float) -> float:
        """What it was paid, and more if it was late."""
        share = self.late_before / self.came_before if self.came_before else 0.0
        return self.paid_before * (1.0 + LATE_COST * max(0.0, min(share / allowed, MOST_LATE) - 1))


class Since(Record):
    """What happened since the last pass: how many items came, and how many jobs ended for each
    worker that had work."""

    now: float
    seconds: float
    came: int
    ends: float


# -- one fleet ----------------------------------------------------------------------------------


def advanced(
    fleet: ShadowFleet, since: Since, service: Service, wait_seconds: float
) -> ShadowFleet:
    """What becomes of it meanwhile. Of those who came, so many are late as the fleet does not reach
    within the wait."""
    items = fleet.items + since.came
    ended = min(items, since.ends * min(items, fleet.active))
    here = sum(int(n) for at, n in fleet.starting if at <= since.now)
    moved = fleet.replace(
        active=fleet.active + here,
        items=round(items - ended, 3),
        starting=[one for one in fleet.starting if one[0] > since.now],
        came=fleet.came + since.came,
        paid=round(fleet.paid + fleet.size * since.seconds, 3),
    )
    if not since.came or not moved.waiting:
        return moved
    reach = queueing.reach(moved.line(since.now), service, at=wait_seconds, z=0.0)
    late = min(float(since.came), max(0.0, moved.waiting - reach))
    return moved.replace(late=round(moved.late + late, 3)) if late else moved


def resized(fleet: ShadowFleet, wanted: int, now: float, cold_start: float) -> ShadowFleet:
    """Launch, or have those leave who have not come yet, then the idle."""
    more, starting = wanted - fleet.size, list(fleet.starting)
    if not more:
        return fleet
    if more > 0:
        at = now + cold_start
        if starting and at - starting[-1][0] < cold_start / LAUNCHES:
            more += int(starting.pop()[1])  # as good as the same moment
        return fleet.replace(starting=[*starting, [round(at, 3), more]])
    while more < 0 and starting:
        at, n = starting.pop()
        more += int(n)
        if more > 0:
            starting.append([at, more])
    leave = min(max(0, -more), fleet.active - fleet.busy)
    return fleet.replace(starting=starting, active=fleet.active - leave)


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


def followed(memory: Mapping[str, Any]) -> Variant:
    return WAYS[_place(memory)]


def noted(
    seen: Snapshot,
    service: Service,
    *,
    cold_start: float,
    wait_seconds: float,
    percentile: float,
    size: Callable[[ShadowFleet, Variant], int],
) -> list[Any]:
    """The note for the next decision. `size` tells how many workers a fleet is to have that is
    sized in a way."""
    note = seen.memory.get(NAME)
    if note is None or len(note[2]) != len(WAYS):
        return [USUAL, seen.now, [list(ShadowFleet())] * len(WAYS)]
    before, at, rows = note
    since = _since(seen, seen.now - at, service)
    rule = learned_margin.aimed(seen, learned_margin.KEPT, percentile)
    fleets = []
    for way, row in zip(WAYS, rows, strict=True):
        fleet = advanced(ShadowFleet.of(row), since, service, wait_seconds)
        fleet = resized(fleet, size(fleet, way), seen.now, cold_start)
        fleets.append(learned(fleet, rule, percentile) if learned_margin.is_due(seen) else fleet)
    place = before
    if learned_margin.is_due(seen) and learned_margin.is_known(seen):
        is_tried = learned_margin.learned_for(seen) >= CALM_AFTER_SECONDS
        ways = [at for at, way in enumerate(WAYS) if is_tried or not way.is_calm]
        place = _cheapest(fleets, ways, before, percentile)
    return [place, seen.now, [list(fleet) for fleet in fleets]]


def change(memory: Mapping[str, Any], note: Sequence[Any]) -> float:
    """By how much the margin differs because another way is followed from now on."""
    place, _, rows = note
    return ShadowFleet.of(rows[place]).margin - ShadowFleet.of(rows[_place(memory)]).margin


def _place(memory: Mapping[str, Any]) -> int:
    """Of the way that is followed."""
    note = memory.get(NAME)
    return note[0] if note and len(note[2]) == len(WAYS) else USUAL


def _since(seen: Snapshot, seconds: float, service: Service) -> Since:
    came, ended, had_work = arrivals.moved(seen)
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
    costs = [fleet.cost(learned_margin.allowed(percentile)) for fleet in fleets]
    usual = costs[USUAL]
    best = min(ways, key=costs.__getitem__)
    stays = costs[before] < STILL_BETTER * usual
    if costs[best] < min(BETTER * usual, STILL_BETTER * costs[before] if stays else usual):
        return best
    return before if stays else USUAL
