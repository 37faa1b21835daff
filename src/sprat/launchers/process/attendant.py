"""When a fork server has to look at its pool again, as the attendant of the pool. Pure.

The store may count on processes that are dead: workers and launches whose leases still run. An
attendant relies on a worker only if the store heard from it after the last call (a push, a check).
Until then it looks again several times per lease, which also keeps the store from looking unused: a
gap would extend the leases of dead workers (see core/leases.py).
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

MOST_FAILURES = 10  # launches in a row, minutes in all; then only a push or a check tries again
SOON_SECONDS = 0.05
AGAIN_SECONDS = 1.0  # where work waits, no worker is there, and no rule says when to look


def look_again_in(
    snapshot: Snapshot, settings: PoolSettings, *, ours: Container[str], called_ago: float
) -> float | None:
    """Seconds until there may be something to do for a fork server whose own workers are `ours`;
    None when there is nothing to do, or a worker is certain to do it."""
    if not snapshot.counts.pending and not snapshot.counts.claimed:
        return None
    return min(_moments(snapshot, settings, ours, called_ago), default=None)


def _moments(
    snapshot: Snapshot, settings: PoolSettings, ours: Container[str], called_ago: float
) -> Iterator[float]:
    others = [worker for worker in snapshot.workers if worker.worker_id not in ours]
    called_at = snapshot.now - called_ago
    for worker in others:
        if not has_reported(worker, called_at):
            left = worker.lease_until - snapshot.now + SOON_SECONDS
            yield max(SOON_SECONDS, min(left, TOUCH_PART * worker.lease_seconds))
    if snapshot.paused:
        if snapshot.paused_seconds is not None:
            yield snapshot.paused_seconds
    elif snapshot.counts.ready and snapshot.launch_failures:
        if snapshot.launch_failures < MOST_FAILURES:
            yield max(2 * SOON_SECONDS, pause_left(snapshot))
    else:
        yield from _by_plan(snapshot, settings)


def _by_plan(snapshot: Snapshot, settings: PoolSettings) -> Iterator[float]:
    planned = (snapshot.next_due_seconds, policies.look_again_in(snapshot, settings))
    yield from (moment for moment in planned if moment is not None)
    if snapshot.claimable and not snapshot.workers and settings.max_workers:
        yield AGAIN_SECONDS


def has_reported(worker: WorkerRecord, called_at: float) -> bool:
    """Whether the store heard from the worker after the call. A recorded launch does not count:
    the process that was to start it may have died."""
    if worker.status == model.STARTING and worker.last_heartbeat <= worker.started_at:
        return False
    return worker.last_heartbeat > called_at
