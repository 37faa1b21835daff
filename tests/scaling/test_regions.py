"""A number of workers over regions: shares, prices, health and fail-over."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprat.core.errors import InvalidInput
from sprat.scaling.engine import ScaleDirection
from sprat.scaling.regions import Region, spread

US = Region(name="us", capacity=20)
EU = Region(name="eu", capacity=20)
AP = Region(name="ap", capacity=10)


@pytest.mark.parametrize(
    ("target", "regions", "workers"),
    [
        (0, [US, EU], {"us": 0, "eu": 0}),
        (10, [US, EU], {"us": 5, "eu": 5}),
        (10, [US, EU, AP], {"us": 4, "eu": 4, "ap": 2}),
        (9, [US, EU.replace(price=2.0)], {"us": 6, "eu": 3}),
        (50, [US, EU, AP], {"us": 20, "eu": 20, "ap": 10}),
        (3, [US, AP.replace(min_workers=2)], {"us": 1, "ap": 2}),
        (1, [US, AP.replace(min_workers=2)], {"us": 0, "ap": 2}),
        (30, [US, AP.replace(capacity=0)], {"us": 20, "ap": 0}),
    ],
)
def test_shares_follow_capacity_and_price(
    target: int, regions: list[Region], workers: dict[str, int]
) -> None:
    assert spread(target, regions).workers == workers


def test_what_has_no_room_is_told() -> None:
    made = spread(60, [US, EU])
    assert (made.workers, made.unplaced) == ({"us": 20, "eu": 20}, 20)
    assert "no room for 20 more" in made.reason


def test_cost_is_the_sum_of_the_prices() -> None:
    assert spread(9, [US, EU.replace(price=2.0)]).cost_per_hour == 12.0


def test_4_11_fail_over_raises_the_region_that_stands_in() -> None:
    regions = [US, EU.replace(fail_over_to="ap", current_workers=4), AP.replace(current_workers=2)]
    before = spread(10, regions)
    assert before.decisions["ap"].direction == ScaleDirection.HOLD
    made = spread(10, [US, regions[1].replace(health=0.0), regions[2]])
    assert made.workers == {"us": 4, "eu": 0, "ap": 6}
    raised = made.decisions["ap"]
    assert (raised.direction, raised.current_workers, raised.desired_workers) == ("up", 2, 6)
    assert "eu is down: 4 go to ap" in raised.reason
    assert "eu" not in made.decisions["us"].reason


def test_4_11_what_the_stand_in_cannot_take_goes_elsewhere() -> None:
    made = spread(30, [US, EU.replace(health=0.0, fail_over_to="ap"), AP])
    assert made.workers == {"us": 20, "eu": 0, "ap": 10}
    assert "eu is down: 4 go to ap and 8 elsewhere" in made.reason


def test_without_a_stand_in_all_that_are_well_are_raised() -> None:
    made = spread(10, [US, EU.replace(health=0.0), AP])
    assert made.workers == {"us": 7, "eu": 0, "ap": 3}
    assert "eu is down" in made.decisions["us"].reason


def test_a_stand_in_that_is_down_as_well_is_passed_over() -> None:
    made = spread(10, [US, EU.replace(health=0.0, fail_over_to="ap"), AP.replace(health=0.0)])
    assert made.workers == {"us": 10, "eu": 0, "ap": 0}


def test_a_region_that_is_half_well_keeps_half() -> None:
    made = spread(40, [US, EU.replace(health=0.5), AP])
    assert made.workers == {"us": 20, "eu": 10, "ap": 10}


@pytest.mark.parametrize(
    ("target", "regions", "words"),
    [
        (-1, [US], "the target must be a whole number"),
        (1, [US, US], "named twice"),
        (1, [US.replace(price=0)], "the price of region us must be more than 0"),
        (1, [US.replace(price=-1)], "the price of region us must be a number"),
        (1, [US.replace(health=2)], "the health of region us must be a number from 0 to 1"),
        (1, [US.replace(min_workers=21)], "min_workers of region us is more than its capacity 20"),
        (1, [US.replace(fail_over_to="mars")], "mars, the fail-over of region us, is not a region"),
    ],
)
def test_nonsense_is_refused(target: int, regions: list[Region], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        spread(target, regions)


@st.composite
def some_regions(draw: st.DrawFn) -> list[Region]:
    names = "abcde"[: draw(st.integers(1, 5))]

    def region(name: str) -> Any:
        capacity = draw(st.integers(0, 20))
        return Region(
            name=name,
            capacity=capacity,
            price=draw(st.floats(0.1, 10)),
            health=draw(st.sampled_from([0.0, 0.5, 1.0, 1.0])),
            min_workers=draw(st.integers(0, min(2, capacity))),
            fail_over_to=draw(st.sampled_from([None, *names])),
        )

    return [region(name) for name in names]


@given(st.integers(0, 60), some_regions())
def test_every_worker_is_placed_while_there_is_room(target: int, regions: list[Region]) -> None:
    made = spread(target, regions)
    for region in regions:
        assert min(region.min_workers, region.room) <= made.workers[region.name] <= region.room
    placed = sum(made.workers.values())
    least = sum(min(r.min_workers, r.room) for r in regions)
    assert placed == max(least, min(target, sum(r.room for r in regions)))
    assert made.unplaced == max(0, target - placed)


@given(st.integers(0, 60), some_regions())
def test_one_worker_more_takes_none_away(target: int, regions: list[Region]) -> None:
    few, many = spread(target, regions).workers, spread(target + 1, regions).workers
    assert all(many[name] >= few[name] for name in few)
