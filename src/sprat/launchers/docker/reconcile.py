"""What became of the containers of a pool: who ended, and why; what is left is cleared away.

Nothing is concluded from a container that is not there while its worker is still `starting`: the
pass that reserved it may be about to make it. And a container is removed only when its worker is
known to have ended: should we be killed before the reason is told, the next pass finds it again.
"""

from __future__ import annotations

from collections.abc import Sequence

from sprat.core import model
from sprat.core.errors import SpratError
from sprat.core.record import Record
from sprat.core.runtime import runtime
from sprat.launchers.docker.containers import container_name, place
from sprat.launchers.docker.engine import Container, Engine

OVER = ("exited", "dead")
# A container so young may belong to a worker that was reserved after the workers were listed.
YOUNG_SECONDS = 5.0
# A worker that ended this long ago and still runs is stuck: its result would be refused anyway.
STRAY_SECONDS = 60.0


class Stray(Record):
    """A container whose worker has ended, and for how long."""

    container: Container
    seconds: float


def tend(
    engine: Engine,
    url: str,
    pool: str,
    *,
    workers: Sequence[model.WorkerRecord],
    stop_seconds: float,
) -> dict[str, str]:
    """Who of these live workers is gone, and why."""
    containers = engine.list(url, pool)
    live = {worker.worker_id for worker in workers}
    over = [c for c in containers if c.state in OVER]
    gone = {c.worker_id: _why(engine, c) for c in over if c.worker_id in live}
    now = runtime.time()
    for container in over:
        if container.worker_id not in live and now - container.created_at > YOUNG_SECONDS:
            _clear(engine, container)
    existing = {container.worker_id for container in containers}
    gone |= _missing(engine, pool, [w for w in workers if w.worker_id not in existing])
    leftover = [c for c in containers if c.state not in OVER and c.worker_id not in live]
    for stray in _strays(url, pool, [c for c in leftover if _is_old(c, now)]):
        _end(engine, stray, stop_seconds)
    return gone


def _clear(engine: Engine, container: Container) -> None:
    """Remove what is left. A container that the engine cannot remove does not keep the others."""
    try:
        engine.remove(container.name)
    except SpratError as error:
        import logging

        logging.getLogger("sprat").warning("the container %s stays: %s", container.name, error)


def _why(engine: Engine, container: Container) -> str:
    """How it ended, with the last that it wrote."""
    state = engine.look(container.name)
    code = state.get("ExitCode", 0)
    if state.get("OOMKilled"):
        how = "its container was killed for want of memory: raise launcher_options.memory"
    elif code > 128:
        how = f"its container was ended by signal {code - 128}"
    else:
        how = f"its container exited with code {code}"
    details = (state.get("Error"), engine.last_words(container.name))
    return "\n".join((how, *(part for part in details if part)))


def _missing(engine: Engine, pool: str, workers: Sequence[model.WorkerRecord]) -> dict[str, str]:
    """The workers that registered from a container of this engine that was removed since."""
    came = [worker for worker in workers if worker.status != model.STARTING]
    if not came:
        return {}
    here = engine.mark()
    gone = {}
    for worker in came:
        name = container_name(pool, worker.worker_id)
        if worker.metadata.get("place") == place(name, here) and not engine.look(name):
            gone[worker.worker_id] = "its container was removed"
    return gone


def _is_old(container: Container, now: float) -> bool:
    return now - container.created_at > STRAY_SECONDS


def _strays(url: str, pool: str, containers: Sequence[Container]) -> list[Stray]:
    """Those whose worker ended long ago, by what the store says."""
    if not containers:
        return []
    from sprat.store.open_store import open_store

    strays = []
    with open_store(url) as store:
        now = store.pool(pool).observe().now
        for container in containers:
            worker = store.workers.get(container.worker_id)
            if worker is not None and worker.status in model.LIVE:
                continue
            seconds = now - max(worker.last_heartbeat, worker.started_at) if worker else now
            if seconds > STRAY_SECONDS:
                strays.append(Stray(container=container, seconds=seconds))
    return strays


def _end(engine: Engine, stray: Stray, stop_seconds: float) -> None:
    """One step towards its end; a pass waits for nothing, the next one takes the next step."""
    name = stray.container.name
    if stray.container.state == "created":
        _clear(engine, stray.container)
        return
    if stray.container.state == "paused":
        engine.unpause(name)
    is_late = stray.seconds > STRAY_SECONDS + stop_seconds
    engine.signal(name, "SIGKILL" if is_late else "SIGTERM")
