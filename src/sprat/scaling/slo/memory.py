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
    from typing import Any

VERSION = 1  # of the JSON: a change of any record below takes the next one
LARGEST = 1e18  # a number beyond this was not noted by us


class StartTimes(Record):
    """Cold starts: which workers are on the way since when, and how long the last starts took."""

    launched: Mapping[str, float] = {}  # worker that is on the way -> when
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


class RiseNote(Record):
    """A load that is due at a moment, and in words what foretells it."""

    at: float
    load: float
    words: str


class ForecastNote(Record):
    """What the history foretells. Only the predictive policy makes this note."""

    slope: float = 0.0  # busy workers more, each second
    rises: Sequence[RiseNote] = ()


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
    forecast: ForecastNote | None = None


# -- JSON -----------------------------------------------------------------------------------------

# Fields that are not numbers, by name: those of the memory, and those inside of its notes
RECORDS: dict[str, type[Record]] = {
    "starts": StartTimes,
    "runs": RunTimes,
    "arrivals": ArrivalCounts,
    "loads": LoadAverages,
    "margin": LearnedMargin,
    "shadows": ShadowFleets,
    "forecast": ForecastNote,
}
LISTS: dict[str, type[Record]] = {
    "fleets": ShadowFleet,
    "starting": ShadowLaunch,
    "rises": RiseNote,
}
NUMBERS = ("seconds", "slow")


def read(document: Mapping[str, Any]) -> Memory:
    """The notes of the last decision; none, if they are of another version or damaged."""
    if document.get("version") != VERSION:
        return Memory()
    try:
        memory: Memory = _record(Memory, document)
    except (AttributeError, TypeError, ValueError):
        return Memory()
    return memory if _is_of_these_ways(memory) else Memory()


def _is_of_these_ways(memory: Memory) -> bool:
    loads, shadows = memory.loads, memory.shadows
    if loads is not None and len(loads.slow) != len(variants.MEMORIES):
        return False
    if shadows is None:
        return True
    ways = len(variants.WAYS)
    return len(shadows.fleets) == ways and shadows.way in range(ways)


def _record(kind: type[Record], row: Mapping[str, Any]) -> Any:
    parts = RECORDS if kind is Memory else {}
    return kind(
        **{
            name: _record(parts[name], row[name]) if name in parts else _field(name, row[name])
            for name in kind._names
            if name in row
        }
    )


def _field(name: str, value: Any) -> Any:
    if name in LISTS:
        return tuple(_record(LISTS[name], row) for row in value)
    if name in NUMBERS:
        return tuple(_number(number, name) for number in value)
    if name == "launched":
        return {str(worker): _number(at, name) for worker, at in value.items()}
    return str(value) if name == "words" else _number(value, name)


def _number(value: Any, name: str) -> Any:
    """Only a margin may be below 0."""
    low = -LARGEST if name == "margin" else 0.0
    if isinstance(value, bool) or not low <= value <= LARGEST:
        raise ValueError(f"{name} is {value!r}")
    return value


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
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
