"""When a nest has to look at its pool again. Pure.

The store may count on processes that are dead: workers and launches whose leases still run. A nest
relies on a worker only if the store heard from it after the last call (a push, a check). Until then
it looks again several times per lease, which also keeps the store from looking unused: a gap would
extend the leases of the dead (see leases.py).
"""

from __future__ import annotations

from sprat.core import model
from sprat.core.leases import TOUCH_PART
from sprat.scaling import policies
from sprat.scaling.launch_backoff import pause_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from sprat.core.model import PoolSettings, Snapshot, WorkerRecord

MOST_FAILURES = 10  # launches in a row, minutes in all; then it takes a push or a check to try
SOON_SECONDS = 0.05
AGAIN_SECONDS = 1.0  # where work waits, no worker is there, and no rule says when to look


def look_again_in(
    seen: Snapshot, settings: PoolSettings, *, ours: Container[str], called_ago: float
) -> float | None:
    """Seconds until there may be something to do for a nest whose own workers are `ours`; None
    when there is nothing, or it is sure to be done."""
    if not seen.counts.pending and not seen.counts.claimed:
        return None
    return min(_moments(seen, settings, ours, called_ago), default=None)


def _moments(
    seen: Snapshot, settings: PoolSettings, ours: Container[str], called_ago: float
) -> Iterator[float]:
    others = [worker for worker in seen.workers if worker.worker_id not in ours]
    called_at = seen.now - called_ago
    for worker in others:
        if not is_heard(worker, called_at):
            left = worker.lease_until - seen.now + SOON_SECONDS
            yield max(SOON_SECONDS, min(left, TOUCH_PART * worker.lease_seconds))
    if seen.paused:
        if seen.paused_seconds is not None:
            yield seen.paused_seconds
    elif seen.counts.ready and seen.launch_failures:
        if seen.launch_failures < MOST_FAILURES:
            yield max(2 * SOON_SECONDS, pause_left(seen))
    else:
        yield from _by_plan(seen, settings)


def _by_plan(seen: Snapshot, settings: PoolSettings) -> Iterator[float]:
    planned = (seen.next_due_seconds, policies.look_again_in(seen, settings))
    yield from (moment for moment in planned if moment is not None)
    if seen.claimable and not seen.workers and settings.max_workers:
        yield AGAIN_SECONDS


def is_heard(worker: WorkerRecord, called_at: float) -> bool:
    """Whether the worker gave a sign of life after the call. That a launch was recorded is none:
    its starter may have died since."""
    if worker.status == model.STARTING and worker.last_heartbeat <= worker.started_at:
        return False
    return worker.last_heartbeat > called_at
