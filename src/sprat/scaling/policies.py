"""The policies by name: which there are, what options each takes, and the one that a pool has.

A policy is a module with a NAME, a record `Options` with its defaults, FIELDS for each of them, and
`decide(seen, settings)`, a pure function. It may have more: `check(settings)` looks at all settings
together; `is_needed`, `look_again_in`, `wants_history` and `leaves_when_idle` (or the constant
LEAVES_WHEN_IDLE) are as below; REMEMBERS and HISTORY_SECONDS say what it wants to see besides the
snapshot (see policy_input.py). A module is imported when a pool asks for it: workers are short
lived.
"""

from __future__ import annotations

from sprat.core import extensions, fields
from sprat.core.did_you_mean import did_you_mean
from sprat.core.errors import InvalidInput
from sprat.scaling.launch_backoff import SATURATED_PAUSE_SECONDS, spared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.core.model import Decision, PoolSettings, Snapshot

NAMES = extensions.names("policy")


def find(name: object) -> Any:
    """The module of a policy, or InvalidInput."""
    if not isinstance(name, str) or name not in NAMES:
        raise InvalidInput(f"there is no policy {name!r}{did_you_mean(name, NAMES)}")
    return extensions.load("policy", name)


def decide(seen: Snapshot, settings: PoolSettings) -> Decision:
    """What the pool's own policy makes of what was seen, as far as the machine can bear it."""
    return spared(seen, _decided(seen, settings))


def _decided(seen: Snapshot, settings: PoolSettings) -> Decision:
    policy = find(settings.policy)
    if seen.suspended:
        from sprat.scaling import suspended

        return suspended.decide(policy, seen, settings)
    decision: Decision = policy.decide(seen, settings)
    return decision


def is_needed(seen: Snapshot, settings: PoolSettings, worker_id: str) -> bool:
    """Whether a worker that has been idle for a while has to stay all the same."""
    policy = find(settings.policy)
    if seen.suspended:
        from sprat.scaling import suspended

        seen = suspended.without(seen)
    if hasattr(policy, "is_needed"):
        return bool(policy.is_needed(seen, settings))
    if getattr(policy, "LEAVES_WHEN_IDLE", False):
        return seen.active <= settings.min_workers
    return worker_id not in decide(seen, settings).drain


def leaves_when_idle(seen: Any, settings: PoolSettings) -> bool:
    """Whether a worker leaves by itself after `idle_seconds`, unless the fleet is at its minimum.
    False: the policy drains it when it is not wanted. For simulations, whose snapshots are no
    records."""
    policy = find(settings.policy)
    if hasattr(policy, "leaves_when_idle"):
        return bool(policy.leaves_when_idle(seen, settings))
    return bool(getattr(policy, "LEAVES_WHEN_IDLE", False))


def look_again_in(seen: Snapshot, settings: PoolSettings) -> float | None:
    """Seconds until the policy has to look again although nothing has happened; None: it need
    not."""
    policy = find(settings.policy)
    moments = [policy.look_again_in(seen, settings) if hasattr(policy, "look_again_in") else None]
    if seen.saturated and seen.claimable:
        moments.append(SATURATED_PAUSE_SECONDS)
    return min((moment for moment in moments if moment is not None), default=None)


def wants_history(seen: Snapshot, settings: PoolSettings) -> bool:
    """Whether the policy looks at the history at this pass: reading it costs more than the rest."""
    policy = find(settings.policy)
    if not getattr(policy, "HISTORY_SECONDS", 0.0):
        return False
    return bool(policy.wants_history(seen, settings)) if hasattr(policy, "wants_history") else True


def check(settings: PoolSettings) -> None:
    """Refuse options that the policy does not have, or cannot use, in one sentence."""
    for name, value in settings.policy_options.items():
        option(settings.policy, name, value)
    policy = find(settings.policy)
    try:
        if hasattr(policy, "check"):
            policy.check(settings)
    except InvalidInput as error:
        raise InvalidInput(f"the policy {settings.policy}: {error}") from None


def option(policy: str, name: str, value: object, *, in_file: bool = False) -> Any:
    """The value of an option, or InvalidInput; `in_file`: of a YAML file, where 5m is a time."""
    return fields.option(f"the policy {policy}", find(policy).FIELDS, name, value, in_file=in_file)
