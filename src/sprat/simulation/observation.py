"""A simulated pool as a policy sees it: all that `model.Snapshot` has, worked out when it is read.

A policy looks at a few of the fields, and a replay asks it a hundred thousand times: counting
workers and statistics that nobody reads would be most of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sprat.core import model
from sprat.simulation.fleet import SimulatedFleet
from sprat.simulation.statistics import EPOCH, SimulatedStatistics

POOL = "simulated"


class Roll:
    """The records of all workers there ever were, made once for each worker and state."""

    def __init__(self, fleet: SimulatedFleet) -> None:
        self._fleet = fleet
        at, later = fleet.launched_at, fleet.terms.cold_start_seconds
        self._starting = Records(model.STARTING, at)
        self._idle = Records(model.ACTIVE, at, later)
        self._busy = Records(model.ACTIVE, at, later, claims=1)
        self._leaving = Records(model.TERMINATING, at, later, claims=1)

    def call(self) -> tuple[model.WorkerRecord, ...]:
        fleet, busy, leaving = self._fleet, self._busy, self._leaving
        return (
            *map(self._starting.__getitem__, fleet.starting),
            *map(self._idle.__getitem__, fleet.idle),
            *[(leaving if w in fleet.draining else busy)[w] for _, w, _ in fleet.running],
        )


class Records(dict[int, model.WorkerRecord]):
    """Those of workers in one state. A worker that registers starts anew, so an active one started
    when its cold start was over."""

    def __init__(
        self, status: str, launched_at: list[float], later: float = 0.0, claims: int = 0
    ) -> None:
        super().__init__()
        self._status, self._launched_at = status, launched_at
        self._later, self._claims = later, claims

    def __missing__(self, worker: int) -> model.WorkerRecord:
        made = self[worker] = model.WorkerRecord(
            worker_id=name_of(worker),
            status=self._status,
            pool_id=POOL,
            started_at=EPOCH + self._launched_at[worker] + self._later,
            claims=self._claims,
            lease_until=float("inf"),
        )
        return made


def name_of(worker: int) -> str:
    return f"w{worker:06d}"


def worker_of(name: str) -> int:
    return int(name[1:])


class Observation:
    """Stands in for a `model.Snapshot`; `as_record` is the real one."""

    pool = POOL
    group = None
    next_due_seconds = None
    paused = False
    held = 0
    launch_failures = 0
    last_launch_failure_at = None

    def __init__(
        self,
        fleet: SimulatedFleet,
        roll: Roll,
        chronicle: SimulatedStatistics,
        *,
        version: int,
        changed_at: tuple[float | None, float | None],
        memory: Mapping[str, Any],
    ) -> None:
        self._fleet, self._roll, self._chronicle = fleet, roll, chronicle
        self.version = version
        self.now = EPOCH + fleet.now
        self.last_up_at, self.last_down_at = changed_at
        self.memory = memory
        self.starting, self.idle, self.active = len(fleet.starting), len(fleet.idle), fleet.active

    def __getattr__(self, name: str) -> Any:
        """What is read for the first time. What is not simulated has its default."""
        make = MAKERS.get(name)
        if make is None and name not in model.Snapshot._defaults:
            raise AttributeError(f"a snapshot has no {name}")
        value = model.Snapshot._defaults[name] if make is None else make(self)
        setattr(self, name, value)
        return value

    def as_record(self) -> model.Snapshot:
        values = {name: getattr(self, name) for name in model.Snapshot._names}
        return model.Snapshot(**{**values, "stats": self.stats.as_record()})


def _counts(seen: Observation) -> model.Counts:
    fleet = seen._fleet
    return model.Counts(pending=fleet.waiting, claimed=fleet.busy, done=fleet.done)


MAKERS: dict[str, Callable[[Observation], Any]] = {
    "counts": _counts,
    "claimable": lambda seen: seen.counts.ready,
    "workers": lambda seen: seen._roll.call(),
    "oldest_ready_seconds": lambda seen: seen._fleet.oldest_wait,
    "stats": lambda seen: seen._chronicle.stats(),
    "history": lambda seen: seen._chronicle.history(),
}
