"""Spreads a number of workers over regions, by capacity, price and health. Pure.

Each region gets its minimum, and the rest goes out one by one, always to the region where it weighs
least: capacity over price, divided by what the region already has (D'Hondt's method). So a region
of twice the capacity gets twice as many, one of twice the price half as many, one more worker never
takes any away from anybody, and the cheapest region is not all there is when it fails.

When a region fails, its share goes to the region named to stand in for it, as far as that has room,
and the rest to all that are left: those are raised at once, and fall back when it is well again.
"""

from __future__ import annotations

import heapq

from sprat.core.errors import InvalidInput
from sprat.core.fields import number, workers
from sprat.core.record import Record
from sprat.scaling.engine import ScaleDecision, ScaleDirection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Region(Record):
    """A place for workers. `health` is the part of its capacity that can be used: 0 is down."""

    name: str
    capacity: int
    price: float = 1.0  # of a worker for an hour, in any currency, the same for all
    health: float = 1.0
    min_workers: int = 0
    current_workers: int = 0
    fail_over_to: str | None = None  # who stands in for it; None: all together

    @property
    def room(self) -> int:
        return int(self.capacity * self.health + 1e-9)

    @property
    def weight(self) -> float:
        return self.capacity / self.price


class Spread(Record):
    """Who gets how many, and why. `unplaced` are those that no region has room for."""

    workers: Mapping[str, int]
    unplaced: int
    cost_per_hour: float
    reason: str
    decisions: Mapping[str, ScaleDecision]


class Move(Record):
    """What a region could not hold, and who took it; None: whoever had room."""

    source: str
    to: str | None
    what: str


def spread(target: int, regions: Sequence[Region]) -> Spread:
    """Place `target` workers."""
    _check(target, regions)
    usual = _apportion(target, regions, {r.name: r.capacity for r in regions}, {})
    room = {r.name: r.room for r in regions}
    placed = {r.name: min(usual[r.name], room[r.name]) for r in regions}
    moves: list[Move] = []
    for region in regions:
        away = min(usual[region.name] - placed[region.name], target - sum(placed.values()))
        if away > 0:
            moves.append(_fail_over(region, away, placed, room))
    final = _apportion(target, regions, room, placed)
    unplaced = target - sum(final.values())
    return Spread(
        workers=final,
        unplaced=max(0, unplaced),
        cost_per_hour=sum(r.price * final[r.name] for r in regions),
        reason=_reason(final, moves, unplaced),
        decisions={r.name: _decision(r, final[r.name], moves) for r in regions},
    )


def _apportion(
    target: int, regions: Sequence[Region], room: Mapping[str, int], placed: Mapping[str, int]
) -> dict[str, int]:
    """Those placed already and the minimums, then one by one until the target is reached."""
    has = {r.name: min(room[r.name], max(placed.get(r.name, 0), r.min_workers)) for r in regions}
    queue = [(_load(r, has[r.name]), place) for place, r in enumerate(regions)]
    heapq.heapify(queue)
    left = target - sum(has.values())
    while queue and left > 0:
        _, place = heapq.heappop(queue)
        region = regions[place]
        if has[region.name] < room[region.name]:
            has[region.name] += 1
            left -= 1
            heapq.heappush(queue, (_load(region, has[region.name]), place))
    return has


def _load(region: Region, workers: int) -> float:
    """How heavily one worker more would weigh on it."""
    return (workers + 1) / region.weight if region.weight else float("inf")


def _fail_over(region: Region, away: int, placed: dict[str, int], room: Mapping[str, int]) -> Move:
    """Give what a region cannot hold to the one that stands in for it, as far as it has room."""
    state = "is down" if not room[region.name] else f"has room for {room[region.name]} only"
    heir = region.fail_over_to
    taken = 0 if heir is None else min(away, room[heir] - placed[heir])
    if heir is None or taken <= 0:
        return Move(source=region.name, to=None, what=f"{region.name} {state}: {away} go elsewhere")
    placed[heir] += taken
    rest = f" and {away - taken} elsewhere" if away > taken else ""
    return Move(
        source=region.name, to=heir, what=f"{region.name} {state}: {taken} go to {heir}{rest}"
    )


def _reason(final: Mapping[str, int], moves: Sequence[Move], unplaced: int) -> str:
    parts = [", ".join(f"{name} {n}" for name, n in final.items())]
    parts += [move.what for move in moves]
    if unplaced > 0:
        parts.append(f"no room for {unplaced} more")
    if unplaced < 0:
        parts.append(f"the minimums are {-unplaced} more than wanted")
    return "; ".join(parts)


def _decision(region: Region, workers: int, moves: Sequence[Move]) -> ScaleDecision:
    change = workers - region.current_workers
    direction = ScaleDirection.HOLD
    if change:
        direction = ScaleDirection.UP if change > 0 else ScaleDirection.DOWN
    concern = [
        move.what for move in moves if move.to is None or region.name in (move.source, move.to)
    ]
    return ScaleDecision(
        direction=direction,
        desired_workers=workers,
        reason="; ".join([f"its share is {workers}", *concern]),
        current_workers=region.current_workers,
        terms={"capacity": region.capacity, "price": region.price, "health": region.health},
    )


def _check(target: int, regions: Sequence[Region]) -> None:
    workers()(target, "the target")
    names = [region.name for region in regions]
    if len(set(names)) < len(names):
        raise InvalidInput(f"a region is named twice: {', '.join(sorted(names))}")
    for region in regions:
        of = f"of region {region.name}"
        workers()(region.capacity, f"the capacity {of}")
        workers()(region.min_workers, f"min_workers {of}")
        number(0, 1.0)(region.health, f"the health {of}")
        number(0, 1e12)(region.price, f"the price {of}")
        if region.price == 0:
            raise InvalidInput(f"the price {of} must be more than 0: use 1 where all cost the same")
        if region.min_workers > region.capacity:
            raise InvalidInput(f"min_workers {of} is more than its capacity {region.capacity}")
        if region.fail_over_to is not None and region.fail_over_to not in names:
            raise InvalidInput(f"{region.fail_over_to}, the fail-over {of}, is not a region")
