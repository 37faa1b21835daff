"""What the slo policy remembers between decisions: typed notes, kept as JSON in the store. Pure.

Each decision carries the notes for the next one. Only `read` and `write` know their JSON. Notes of
another version, and damaged ones, are forgotten: the policy then learns again, as in a new pool.
"""

from __future__ import annotations

import math

from sprat.core.record import Record
from sprat.scaling.slo import variants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeVar

    Kind = TypeVar("Kind", bound=Record)

VERSION = 1  # of the JSON: a change of any record below takes the next one
LARGEST = 1e18  # a number beyond this was not noted by us


class StartTimes(Record):
    """Cold starts: which workers are on the way since when, and how long the last starts took."""

    starting: Mapping[str, float] = {}
    seconds: Sequence[float] = ()
    at: float = 0.0


class RunTimes(Record):
    """Jobs that ended before the last minutes: how many, their seconds, their squared seconds."""

    jobs: float
    total: float
    squares: float
    at: float


class ArrivalCounts(Record):
    """Arrivals per second, averaged over a short and a long time, and what to count on from."""

    quick: float
    steady: float
    total: int  # items that there ever were
    live: int  # items that wait or run
    at: float


class LoadAverages(Record):
    """Workers that have something to do: an average that follows a burst, one for each memory."""

    fast: float
    slow: Sequence[float]
    at: float


class LearnedMargin(Record):
    """The caution that late starts have taught, and the starts that it was learned from."""

    margin: float = 0.0  # deviations
    at: float = 0.0  # starts are counted until then
    usual: float = 0.0  # starts of a window
    late: float = 0.0  # in the last week or so
    starts: float = 0.0
    since: float = 0.0  # when the first start was counted


class ShadowLaunch(Record):
    """Workers of a simulated fleet that become active at a moment."""

    at: float
    workers: int


class ShadowFleet(Record):
    """A simulated fleet. What it came to is counted in this window, and before."""

    margin: float = 0.0
    usual: float = 0.0  # items of a window
    active: int = 0
    items: float = 0.0  # that wait or run
    starting: Sequence[ShadowLaunch] = ()
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
        return self.active + sum(launch.workers for launch in self.starting)


class ShadowFleets(Record):
    """One fleet for each way of variants.py, and the way that the real fleet follows."""

    way: int
    at: float
    fleets: Sequence[ShadowFleet]


class Memory(Record):
    """All notes. None: nothing has been noted yet, or it does not matter for this target."""

    version: int = VERSION
    starts: StartTimes = StartTimes()
    runs: RunTimes | None = None
    arrivals: ArrivalCounts | None = None
    loads: LoadAverages | None = None
    margin: LearnedMargin | None = None
    persistence: float = 0.0
    shadows: ShadowFleets | None = None


# -- from JSON ------------------------------------------------------------------------------------


def read(document: Mapping[str, Any]) -> Memory:
    """The notes of the last decision; none, if they are of another version or damaged."""
    if document.get("version") != VERSION:
        return Memory()
    try:
        return Memory(
            starts=_starts(document.get("starts") or {}),
            runs=_numbers(RunTimes, document.get("runs")),
            arrivals=_numbers(ArrivalCounts, document.get("arrivals")),
            loads=_loads(document.get("loads")),
            margin=_numbers(LearnedMargin, document.get("margin")),
            persistence=_number(document.get("persistence", 0.0)),
            shadows=_shadows(document.get("shadows")),
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return Memory()


def _starts(row: Mapping[str, Any]) -> StartTimes:
    return StartTimes(
        starting={str(name): _number(at) for name, at in row.get("starting", {}).items()},
        seconds=_series(row.get("seconds", ())),
        at=_number(row.get("at", 0.0)),
    )


def _loads(row: Mapping[str, Any] | None) -> LoadAverages | None:
    if row is None:
        return None
    slow = _series(row["slow"], len(variants.MEMORIES))
    return LoadAverages(fast=_number(row["fast"]), slow=slow, at=_number(row["at"]))


def _shadows(row: Mapping[str, Any] | None) -> ShadowFleets | None:
    if row is None:
        return None
    fleets = tuple(_fleet(fleet) for fleet in row["fleets"])
    if len(fleets) != len(variants.WAYS) or row["way"] not in range(len(fleets)):
        raise ValueError("the notes are about other ways")
    return ShadowFleets(way=row["way"], at=_number(row["at"]), fleets=fleets)


def _fleet(row: Mapping[str, Any]) -> ShadowFleet:
    numbers = {name: _number(value, name) for name, value in row.items() if name != "starting"}
    starting = tuple(
        ShadowLaunch(at=_number(launch["at"]), workers=_number(launch["workers"]))
        for launch in row.get("starting", ())
    )
    return ShadowFleet(**numbers, starting=starting)


def _numbers(kind: type[Kind], row: Mapping[str, Any] | None) -> Kind | None:
    """A record of numbers. Those that are missing have their defaults."""
    if row is None:
        return None
    return kind(**{name: _number(value, name) for name, value in row.items()})


def _series(values: Sequence[Any], length: int | None = None) -> tuple[float, ...]:
    if length not in (None, len(values)):
        raise ValueError(f"{len(values)} numbers instead of {length}")
    return tuple(_number(value) for value in values)


def _number(value: Any, name: str = "") -> Any:
    """Only a margin may be below 0."""
    low = -LARGEST if name == "margin" else 0.0
    if isinstance(value, bool) or not low <= value <= LARGEST:
        raise ValueError(f"{name} is {value!r}")
    return value


# -- to JSON --------------------------------------------------------------------------------------


def write(memory: Memory) -> dict[str, Any]:
    """The notes as JSON: empty, if nothing is to be noted."""
    notes = _plain(memory)
    return {"version": memory.version, **notes} if notes else {}


def _plain(value: Any) -> Any:
    """Without what is as by default: the notes are written at every pass."""
    if isinstance(value, Record):
        defaults = type(value)._defaults
        return {
            name: _plain(field)
            for name, field in value.as_dict().items()
            if name not in defaults or field != defaults[name]
        }
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
