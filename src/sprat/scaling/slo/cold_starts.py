"""Cold starts: how long a worker takes from its launch until it is active, learned. Pure."""

from __future__ import annotations

from sprat.core.model import ACTIVE, STARTING
from sprat.scaling.slo.memory import StartTimes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.model import Decision, Snapshot, WorkerRecord
    from sprat.scaling.slo.memory import Memory

KEPT_STARTS = 10  # the last starts tell how long the next one takes
QUICK_SECONDS = 1.0  # a start that is over by then is over before anybody looks

# Before the first start was seen: what one takes with each launcher, by measurement.
USUAL_START_SECONDS = {"process": 0.05, "docker": 2.0, "kubernetes": 10.0}
UNKNOWN_START_SECONDS = 10.0

# Workers that start at the same time until the first start has been measured: as many as the
# machine has cores, and not fewer than this.
LEAST_FIRST_STARTS = 2
FIRST_LOOK_SECONDS = 0.05  # a forked worker is active by then


def cold_start(starts: StartTimes, launcher: str) -> float:
    """Seconds from a launch until the worker is active: as slow as all but the slowest of the last
    starts, for a launch that comes late is a launch in vain."""
    taken = sorted(starts.seconds)
    if taken:
        return taken[(len(taken) - 1) * 4 // 5]
    return USUAL_START_SECONDS.get(launcher, UNKNOWN_START_SECONDS)


def noted(seen: Snapshot, before: StartTimes) -> StartTimes:
    """The note for the next decision: who is on the way since when, and how long the last starts
    took. Where all are quick there is nothing to note."""
    taken = [
        max(0.0, worker.started_at - before.launched[worker.worker_id])
        for worker in seen.workers
        if worker.status == ACTIVE and worker.worker_id in before.launched
    ]
    if before.seconds:
        taken += [QUICK_SECONDS / 2 for w in seen.workers if _was_quick(seen, w, before)]
    launched = {
        worker.worker_id: worker.started_at
        for worker in seen.workers
        if worker.status == STARTING and seen.now - worker.started_at >= QUICK_SECONDS
    }
    seconds = (*before.seconds, *taken)[-KEPT_STARTS:]
    return StartTimes(launched=launched, seconds=seconds, at=seen.now if seconds else 0.0)


def _was_quick(seen: Snapshot, worker: WorkerRecord, before: StartTimes) -> bool:
    """Whether a worker came so soon after a launch that no pass saw it start."""
    if worker.status != ACTIVE or seen.last_up_at is None or worker.started_at <= before.at:
        return False
    return (
        worker.worker_id not in before.launched
        and 0.0 <= worker.started_at - seen.last_up_at < QUICK_SECONDS
    )


def expected(seen: Snapshot, cold_start_seconds: float) -> tuple[float, ...]:
    """In how many seconds each of those that start will be active."""
    return tuple(
        max(0.0, worker.started_at + cold_start_seconds - seen.now)
        for worker in seen.workers
        if worker.status == STARTING
    )


# -- before the first start was seen --------------------------------------------------------------


def is_measured(seen: Snapshot, memory: Memory) -> bool:
    """Whether a start has been seen to end. One that was quick leaves no note, but a worker that is
    active, or a job that was started in the last minutes."""
    return bool(memory.starts.seconds or seen.active or seen.stats.starts)


def limited(seen: Snapshot, memory: Memory, made: Decision, least: int) -> Decision:
    """The decision with no more first starts at a time than the machine has cores, but those that
    a fleet of the `least` size takes. What a start takes is assumed to be little: if it is much,
    each pass until the first one is over would launch for the same items again."""
    room = max(LEAST_FIRST_STARTS, seen.cores) - seen.starting
    room = max(0, room, least - made.current)
    if not seen.cores or made.launch <= room or is_measured(seen, memory):
        return made
    return made.replace(
        direction="up" if room else "hold",
        desired=made.current + room,
        launch=room,
        reason=f"{made.reason}; launch {room} of {made.launch}: no start has been measured yet",
    )


def first_look_in(seen: Snapshot, memory: Memory) -> float | None:
    """Seconds until the first start may be over, if more work waits than workers start: soon, and
    ever later the longer it takes. None: there is nothing to wait for."""
    began = [worker.started_at for worker in seen.workers if worker.status == STARTING]
    if not seen.cores or not began or seen.claimable <= len(began) or is_measured(seen, memory):
        return None
    return max(FIRST_LOOK_SECONDS, (seen.now - min(began)) / 4.0)
