"""A reconciler looks after one scale set: it holds its lease, and runs a pass when one is due.

Two reconcilers of one scale set do each other no harm: recording a decision is a compare-and-set.
The lease only lets one of them rest. Leaders renew it three times in its length, whether a pass is
due or not; a pass that takes longer may lose it, which is as harmless.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from sprat.config import settings
from sprat.controller.config_file import OF_A_GROUP, ControlledScaleSet
from sprat.controller.configuration import Configuration
from sprat.controller.lease import ControllerLease
from sprat.controller.limits import ScaleSetLimits, merged
from sprat.controller.metrics import ScaleSetMetrics
from sprat.controller.remote import Remote
from sprat.core import model
from sprat.core.model import PoolSettings, Snapshot
from sprat.core.record import Record
from sprat.fleet import checker, policy_input
from sprat.fleet.checker import Checked
from sprat.fleet.controller_lease import SCALING, name_of
from sprat.fleet.launcher import require_processor
from sprat.scaling import policies
from sprat.scaling.launch_backoff import pause_left
from sprat.store.store import Store

SHORTEST_PAUSE_SECONDS = 0.1  # between two passes, whatever a policy says
SOON_SECONDS = 1.0  # after workers were started: more work may have come meanwhile
# Limits that are options of some policies too.
SHARED = ("target_pending_per_worker", "scale_down_delay_seconds")


class Passed(Record):
    """One pass, and what was there after it."""

    checked: Checked
    limits: ScaleSetLimits
    seen: Snapshot
    handed_back: tuple[str, ...] = ()


class Reconciler:
    def __init__(
        self,
        store: Store,
        pool: str,
        scale_set: ControlledScaleSet,
        configuration: Configuration,
        *,
        holder: str,
        remote: Remote | None,
        passed: Callable[[Passed], None],
    ) -> None:
        self._store = store
        self.pool = pool
        self._scale_set = scale_set
        self._configuration = configuration
        self._remote = remote
        self._passed = passed
        self._group = scale_set.group
        seconds = configuration.lease_seconds
        place, backend = name_of(pool, self._group), store.backend
        holder = f"{holder}/{place}"  # two groups of one controller are two: one has the duty
        self._lease = ControllerLease(backend, place, holder=holder, seconds=seconds)
        self._duty: ControllerLease | None = None  # to see to the work that needs no group
        if self._group is not None:
            self._duty = ControllerLease(
                backend, name_of(pool, None), holder=holder, seconds=seconds
            )
        self._due = 0.0
        self._pace = math.inf  # seconds between two passes, at most the poll interval
        self._plan: tuple[PoolSettings, ScaleSetLimits] | None = None
        self._leaving: dict[str, float] = {}  # workers told to leave, since when
        self.metrics = ScaleSetMetrics(pool, self._group)
        self.has_nothing_to_do = False  # new work would be news

    def step(self, *, is_woken: bool = False) -> float:
        """Renew the lease, run a pass if one is due, and say how many seconds there are until
        the next step."""
        now = time.monotonic()
        is_due = is_woken or now >= self._due
        if is_due:
            self._plan = None
        if not self.leads():
            self.metrics.well()
            return self._lease.pause
        if is_due or now >= self._due:
            limits = self._planned()[1]
            self.metrics.interval = limits.poll_interval_seconds
            self._due = now + limits.poll_interval_seconds  # also if what follows fails
            passed = self.run()
            self._due = now + self._until_next(passed)
            self._passed(passed)
        return max(SHORTEST_PAUSE_SECONDS, min(self._due - time.monotonic(), self._lease.pause))

    def leads(self) -> bool:
        """Whether this controller acts for the scale set; ask again before the lease ends."""
        was_leader = self._lease.is_held
        leads = self._lease.hold(self._lease_facts)
        if leads and self._duty is not None:
            self._duty.hold(self._lease_facts)
        if leads and not was_leader:
            self._due = 0.0  # who takes over looks at once
        self.metrics.is_leader = leads
        return leads

    def run(self, *, dry_run: bool = False) -> Passed:
        """One pass, now."""
        plan, limits = self._planned()
        takes_any = dry_run or self._duty is None or self._duty.is_held
        checked = checker.check(
            self._store,
            self.pool,
            settings=plan,
            group=self._group,
            takes_any=takes_any,
            dry_run=dry_run,
        )
        seen = policy_input.observe(self._store, self.pool, plan, self._group, takes_any=takes_any)
        late = () if dry_run else self._hand_back(seen)
        self.metrics.passed(checked, seen, high=limits.max_replicas)
        return Passed(checked=checked, limits=limits, seen=seen, handed_back=late)

    def pause_after_failure(self) -> float:
        """Seconds until the next step: a lease that is held is kept, and a pass is tried again
        after the poll interval."""
        interval = self.metrics.interval or ScaleSetLimits().poll_interval_seconds
        return min(interval, self._lease.pause) if self._lease.is_held else interval

    def close(self) -> None:
        """Let another controller take over at once. The workers go on."""
        self.metrics.is_leader = False
        self._lease.give_up()
        if self._duty is not None:
            self._duty.give_up()

    # -- what it goes by --------------------------------------------------------------------

    def _planned(self) -> tuple[PoolSettings, ScaleSetLimits]:
        """The pool's settings with what this scale set has of its own, and its limits."""
        if self._plan is None:
            scale_set, configuration = self._scale_set, self._configuration
            own = self._store.pool(self.pool).state().settings
            require_processor(own, self.pool)
            central = self._central_limits(own)
            limits = merged(central, scale_set.overrides, configuration.environment)
            given = {**scale_set.overrides, **configuration.environment}
            self._plan = planned(own, scale_set, limits, given), limits
        return self._plan

    def _central_limits(self, own: PoolSettings) -> Mapping[str, float]:
        """The central limits: of a group the orchestrator's, of a whole pool those of its
        settings."""
        scale_set = self._scale_set
        if scale_set.group is None:
            return {"min_replicas": own.min_workers, "max_replicas": own.max_workers}
        if self._remote is None or scale_set.tenant is None:
            return {}
        return self._remote.limits(scale_set.tenant, scale_set.group)

    def _lease_facts(self) -> dict[str, Any]:
        plan, _ = self._planned()
        return {
            "group": self._group,
            "settings": {name: getattr(plan, name) for name in SCALING},
        }

    # -- when and who -----------------------------------------------------------------------

    def _until_next(self, passed: Passed) -> float:
        """Seconds until there may be something to see. Where workers were just started it is
        soon, then ever later: work seldom comes alone."""
        plan, limits = self._planned()
        seen = passed.seen
        self.has_nothing_to_do = not seen.counts.ready or seen.paused
        self._pace = SOON_SECONDS if passed.checked.spawned else 2 * self._pace
        self._pace = min(self._pace, limits.poll_interval_seconds)
        moments = [self._pace]
        if (again := policies.look_again_in(seen, plan)) is not None:
            moments.append(again)
        if seen.next_due_seconds is not None:
            moments.append(seen.next_due_seconds)
        if seen.counts.ready and seen.launch_failures:
            moments.append(pause_left(seen))
        if self._leaving and (limit := self._configuration.drain_deadline_seconds) is not None:
            moments.append(min(self._leaving.values()) + limit - time.monotonic())
        return max(SHORTEST_PAUSE_SECONDS, min(moments))

    def _hand_back(self, seen: Snapshot) -> tuple[str, ...]:
        """Whose drain takes longer than the deadline: its job goes back uncharged, and the worker
        finds out at its next heartbeat, stops the job and leaves."""
        limit = self._configuration.drain_deadline_seconds
        if limit is None:
            return ()
        now = time.monotonic()
        leaving = [w.worker_id for w in seen.workers if w.status == model.TERMINATING]
        self._leaving = {one: self._leaving.get(one, now) for one in leaving}
        late = [one for one, since in self._leaving.items() if now - since >= limit]
        why = f"told to leave, and still busy after {limit:g} s"
        return tuple(
            one
            for one in late
            if self._store.workers.update_status(one, model.TERMINATED, reason=why)
        )


def planned(
    own: PoolSettings,
    scale_set: ControlledScaleSet,
    limits: ScaleSetLimits,
    given: Mapping[str, float],
) -> PoolSettings:
    """A pool's settings as a scale set changes them: a whole pool keeps its own policy, unless
    another is named; where workers start, and which variables they get, is only the scale set's.
    `given` are the limits that were given here: they beat the options of the algorithm, which beat
    what comes from elsewhere. Pure."""
    policy, options = scale_set.algorithm, dict(scale_set.algorithm_options)
    if policy is None and scale_set.group is None:
        policy, options = own.policy, dict(own.policy_options)
    policy = policy or OF_A_GROUP
    for name in SHARED:
        is_known = name in policies.find(policy).FIELDS
        if is_known and (name in given or name not in options):
            options[name] = getattr(limits, name)
    return settings.changed(
        own,
        {
            "policy": policy,
            "policy_options": options,
            "min_workers": limits.min_replicas,
            "max_workers": limits.max_replicas,
            "launcher": scale_set.launcher,
            "launcher_options": scale_set.launcher_options,
            "environment": scale_set.environment,
        },
    )
