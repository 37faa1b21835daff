"""A policy of ours as the one who sizes a simulated fleet: it sees what it would see in a store."""

from __future__ import annotations

from sprat import model
from sprat.scaling import policies
from sprat.simulation.chronicle import EPOCH, Chronicle
from sprat.simulation.fleet import Terms
from sprat.simulation.replay import replay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sprat.simulation.fleet import Fleet
    from sprat.simulation.replay import Outcome, Watcher
    from sprat.simulation.trace import Trace

POLL_SECONDS = 5.0
WINDOW_SECONDS = 600.0  # as Pool.observe has it


class PolicySizer:
    """Asks the policy that the settings name, at every pass."""

    memory_seconds = float("inf")  # a forecast may ask for workers long before the next job

    def __init__(self, settings: model.PoolSettings, *, poll_seconds: float = POLL_SECONDS) -> None:
        self.poll_seconds = poll_seconds
        self._settings = settings
        self._policy = policies.find(settings.policy)
        self._chronicle = Chronicle(
            window=WINDOW_SECONDS,
            history_seconds=float(getattr(self._policy, "HISTORY_SECONDS", 0.0)),
        )
        self._idle = Records(model.ACTIVE)
        self._busy = Records(model.ACTIVE, claims=1)
        self._leaving = Records(model.TERMINATING, claims=1)
        self._starting = Records(model.STARTING)
        self._version = 0
        self._last_up: float | None = None
        self._last_down: float | None = None
        self._memory: Mapping[str, Any] = {}

    def poll(self, fleet: Fleet) -> None:
        self._chronicle.update(fleet)
        seen = self.observe(fleet)
        decision: model.Decision = self._policy.decide(seen, self._settings)
        self._memory = decision.memory
        if not decision.launch and not decision.drain:
            return
        self._version += 1
        if decision.launch:
            self._last_up = seen.now
            fleet.launch(decision.launch)
        if decision.drain:
            self._last_down = seen.now
            fleet.drain([int(name[1:]) for name in decision.drain])

    def observe(self, fleet: Fleet) -> model.Snapshot:
        """The pool as a store would show it."""
        return model.Snapshot(
            pool="simulated",
            group=None,
            version=self._version,
            now=EPOCH + fleet.now,
            counts=model.Counts(pending=fleet.waiting, claimed=fleet.busy, done=fleet.done),
            workers=tuple(self._workers(fleet)),
            oldest_ready_seconds=fleet.oldest_wait,
            last_up_at=self._last_up,
            last_down_at=self._last_down,
            stats=self._chronicle.stats(fleet.now),
            history=self._chronicle.history(),
            memory=self._memory,
        )

    def _workers(self, fleet: Fleet) -> list[model.WorkerRecord]:
        at = fleet.launched_at
        workers = [self._starting.of(worker, at) for worker in fleet.starting]
        workers += [self._idle.of(worker, at) for worker in fleet.idle]
        for _, worker, _ in fleet.running:
            records = self._leaving if worker in fleet.draining else self._busy
            workers.append(records.of(worker, at))
        return workers


class Records:
    """The records of workers in one state, made once for each worker."""

    def __init__(self, status: str, claims: int = 0) -> None:
        self._status = status
        self._claims = claims
        self._made: dict[int, model.WorkerRecord] = {}

    def of(self, worker: int, launched_at: list[float]) -> model.WorkerRecord:
        made = self._made.get(worker)
        if made is None:
            made = self._made[worker] = model.WorkerRecord(
                worker_id=f"w{worker:06d}",
                status=self._status,
                pool_id="simulated",
                started_at=EPOCH + launched_at[worker],
                claims=self._claims,
                lease_until=float("inf"),
            )
        return made


def simulate(
    trace: Trace,
    settings: model.PoolSettings,
    *,
    cold_start_seconds: float,
    wait_target: float | None = None,
    poll_seconds: float = POLL_SECONDS,
    on_push: bool = False,
    watch: Watcher | None = None,
) -> Outcome:
    """Replay a trace through the policy that the settings name, with their bounds."""
    leaves = getattr(policies.find(settings.policy), "LEAVES_WHEN_IDLE", False)
    terms = Terms(
        cold_start_seconds=cold_start_seconds,
        min_workers=settings.min_workers,
        max_workers=settings.max_workers,
        idle_seconds=settings.idle_seconds if leaves else None,
        max_jobs=settings.max_jobs,
        on_push=on_push,
    )
    sizer = PolicySizer(settings, poll_seconds=poll_seconds)
    return replay(trace, sizer, terms, wait_target=wait_target, policy=settings.policy, watch=watch)
