"""The slo policy: the cheapest fleet that starts, say, 95 % of the jobs within 30 seconds.

The user states a target; the policy finds the numbers. What is cheapest depends on how long a
worker takes to start. A start of less than a second is free, so there is nothing to weigh: one
worker for each item that nobody idle will take, as in queue_depth.py. Where starts cost something,
plan.py weighs them against the deadlines of the items that wait.

docs/learn/scaling.md has a worked example, docs/decisions/0011-slo-policy.md the reasons.
"""

from __future__ import annotations

from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.scaling import queue_depth
from sprat.scaling.slo import cold_starts
from sprat.scaling.slo.memory import Memory, read, write
from sprat.scaling.slo.target import FIELDS, Options, check, maximum

__all__ = ["FIELDS", "NAME", "Options", "check", "decide"]

NAME = "slo"
REMEMBERS = True  # its decisions have notes for the next one
HISTORY_SECONDS = 86400.0  # for the starts since the last pass, and the last jobs

FREE_START_SECONDS = 1.0  # nobody is let wait for the sake of a start that takes no longer
SHORTEST_START_SECONDS = 0.001  # a stated start of 0 counts as this: rates are divided by it


def cold_start(seen: Snapshot, memory: Memory, settings: PoolSettings, own: Options) -> float:
    stated = stated_cold_start(settings, own)
    if stated is not None:
        return max(stated, SHORTEST_START_SECONDS)
    # With what this pass sees: the one that measures the first start must not launch without it.
    return cold_starts.cold_start(cold_starts.noted(seen, memory.starts), settings.launcher)


def stated_cold_start(settings: PoolSettings, own: Options) -> float | None:
    """Without measuring; None: it has to be measured."""
    if not settings.policy_options and settings.launcher == "process":
        return cold_starts.USUAL_START_SECONDS["process"]  # no target is stated: nothing to weigh
    return own.cold_start_seconds


def decide(seen: Snapshot, settings: PoolSettings) -> Decision:
    own = Options(**settings.policy_options)
    high = maximum(own, settings)
    bounded = settings.replace(max_workers=high, min_workers=min(settings.min_workers, high))
    memory = read(seen.memory)
    taken = cold_start(seen, memory, settings, own)
    if taken <= FREE_START_SECONDS and own.finish_seconds is None:
        made = queue_depth.decide(seen, bounded)
        noted = Memory(starts=cold_starts.noted(seen, memory.starts))
        made = made.replace(policy=NAME, memory=write(noted))
    else:
        from sprat.scaling.slo import plan  # most pools never need it, and workers are short-lived

        made = plan.decide(seen, memory, bounded, own, taken)
    if stated_cold_start(settings, own) is None:
        made = cold_starts.limited(seen, memory, made, bounded.min_workers)
    return _priced(made, own)


def is_needed(seen: Snapshot, settings: PoolSettings) -> bool:
    """Whether a worker that has been idle for a while has to stay all the same. What waits is not
    for it (a tenant is at its limit, say), or it would have it."""
    own = Options(**settings.policy_options)
    memory = read(seen.memory)
    taken = cold_start(seen, memory, settings, own)
    least = settings.min_workers
    if taken > FREE_START_SECONDS:
        from sprat.scaling.slo import outlook, plan

        view = outlook.outlook(seen, memory, settings, own, taken)
        least = max(least, plan.floor(view))
    return 0 < seen.active <= least


def leaves_when_idle(seen: Snapshot, settings: PoolSettings) -> bool:
    """Whether idle workers leave by themselves: where a start is free, no pass drains them."""
    own = Options(**settings.policy_options)
    taken = cold_start(seen, read(seen.memory), settings, own)
    return taken <= FREE_START_SECONDS


def wants_history(seen: Snapshot, settings: PoolSettings) -> bool:
    """Whether there is something to learn from the history now: once in a while is enough."""
    own = Options(**settings.policy_options)
    memory = read(seen.memory)
    taken = cold_start(seen, memory, settings, own)
    if taken <= FREE_START_SECONDS or own.finish_seconds is not None:
        return False
    from sprat.scaling.slo import learned_margin

    return learned_margin.is_due(seen, memory)


def look_again_in(seen: Snapshot, settings: PoolSettings) -> float | None:
    """Seconds until a pass is due although nothing has happened: work that waits grows older."""
    own = Options(**settings.policy_options)
    if not seen.claimable:
        return None
    memory, is_stated = read(seen.memory), stated_cold_start(settings, own) is not None
    if not is_stated and (soon := cold_starts.first_look_in(seen, memory)):
        return soon
    if cold_start(seen, memory, settings, own) <= FREE_START_SECONDS:
        return None
    target = own.finish_seconds or own.wait_seconds
    return min(5.0, max(0.5, target / 20.0))


def _priced(made: Decision, own: Options) -> Decision:
    if own.price_per_worker_hour is None:
        return made
    per_hour = round(made.desired * own.price_per_worker_hour, 4)
    return made.replace(inputs={**made.inputs, "cost_per_hour": per_hour})
