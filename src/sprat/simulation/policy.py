"""A policy of ours as the one who sizes a simulated fleet: it sees what it would see in a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sprat.core import model
from sprat.scaling import policies
from sprat.simulation.fleet import Terms
from sprat.simulation.observation import Observation, Roll, worker_of
from sprat.simulation.replay import replay
from sprat.simulation.statistics import EPOCH, FINE_SECONDS, SimulatedStatistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.simulation.fleet import SimulatedFleet
    from sprat.simulation.replay import ReplayResult, Watcher
    from sprat.simulation.trace import Trace


POLL_SECONDS = 5.0
QUIET_SECONDS = 15.0  # between passes while nothing happens
WINDOW_SECONDS = 600.0  # as Pool.observe has it


class PolicySizer:
    """Asks the policy that the settings name, at every pass."""

    def __init__(
        self,
        settings: model.PoolSettings,
        *,
        poll_seconds: float = POLL_SECONDS,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self.poll_seconds = self.settle_seconds = poll_seconds
        self.quiet_seconds = max(poll_seconds, quiet_seconds)
        self._settings = settings
        self._policy = policies.find(settings.policy)
        self._chronicle = SimulatedStatistics(
            window=WINDOW_SECONDS,
            history_seconds=float(getattr(self._policy, "HISTORY_SECONDS", 0.0)),
        )
        self._roll: Roll | None = None
        self._version = 0
        self._last_up: float | None = None
        self._last_down: float | None = None
        self._memory: Mapping[str, Any] = {}

    def poll(self, fleet: SimulatedFleet) -> None:
        decision = self._decide(fleet)
        if not decision.launch and not decision.drain:
            return
        self._version += 1
        if decision.launch:
            self._last_up = EPOCH + fleet.now
            fleet.launch(decision.launch)
        if decision.drain:
            self._last_down = EPOCH + fleet.now
            fleet.drain(map(worker_of, decision.drain))

    def verdict(self, fleet: SimulatedFleet) -> str | None:
        """Why the target cannot be met, if that is said when all is over: at the first pass all
        starts have been counted, the next one says what they come to."""
        fleet.advance(fleet.now + WINDOW_SECONDS + FINE_SECONDS)
        self._decide(fleet)
        said = self._decide(fleet)
        return said.reason if "verdict" in said.inputs else None

    def _decide(self, fleet: SimulatedFleet) -> model.Decision:
        seen = self.observe(fleet)
        decision: model.Decision = self._policy.decide(seen, self._settings)
        fleet.keeps_idle = not policies.leaves_when_idle(seen, self._settings)
        self._memory = decision.memory
        return decision

    def observe(self, fleet: SimulatedFleet) -> Observation:
        """The pool as a store would show it."""
        self._chronicle.update(fleet)
        if self._roll is None:
            self._roll = Roll(fleet)
        return Observation(
            fleet,
            self._roll,
            self._chronicle,
            version=self._version,
            changed_at=(self._last_up, self._last_down),
            memory=self._memory,
        )


def simulate(
    trace: Trace,
    settings: model.PoolSettings,
    *,
    cold_start_seconds: float,
    wait_target: float | None = None,
    poll_seconds: float = POLL_SECONDS,
    quiet_seconds: float = QUIET_SECONDS,
    on_push: bool = False,
    watch: Watcher | None = None,
) -> ReplayResult:
    """Replay a trace through the policy that the settings name, with their bounds."""
    terms = Terms(
        cold_start_seconds=cold_start_seconds,
        min_workers=settings.min_workers,
        max_workers=settings.max_workers,
        idle_seconds=settings.idle_seconds,
        max_jobs=settings.max_jobs,
        on_push=on_push,
    )
    sizer = PolicySizer(settings, poll_seconds=poll_seconds, quiet_seconds=quiet_seconds)
    return replay(trace, sizer, terms, wait_target=wait_target, policy=settings.policy, watch=watch)
