"""The health monitor: one pass over all workers that have an endpoint. Any replica may run it.

A worker that does not answer its health check several times in a row is temporarily unavailable,
and one that stays so for too long is removed; a single answer makes good everything. All of that
is kept in the store, and so is whose turn the pass is: replicas do not probe twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from sprat.config.probe_settings import Lifecycle
from sprat.core import jsontext, model
from sprat.core.errors import SpratError
from sprat.core.record import Record
from sprat.server import endpoint_workers
from sprat.server.endpoint_workers import Health
from sprat.server.outbound import Reached
from sprat.store.backend import Backend, WorkerRef

TURN = "monitor"
AT_ONCE = 100  # probes side by side

log = logging.getLogger("sprat.monitor")

Probe = Callable[[str], Awaitable[Reached | None]]


class Seen(Record):
    """What one pass found."""

    probed: int = 0
    unavailable: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def after(known: Health, reached: Reached | None, now: float, rules: Lifecycle) -> Health:
    """A worker's health after one more probe. Pure."""
    if reached is not None and reached.status == 200:
        return Health(
            last_healthy_at=now,
            worker_status="busy" if reached.content.get("worker_status") == "busy" else "idle",
            current_operation=_text(reached.content.get("current_operation")),
        )
    failures = known.failures + 1
    return known.replace(
        failures=failures, is_unavailable=failures >= rules.health_failure_threshold
    )


def is_gone(known: Health, now: float, rules: Lifecycle) -> bool:
    """Whether it has been unavailable for too long; exactly as long as allowed is not. Pure."""
    healthy_at = known.last_healthy_at
    if not known.is_unavailable or healthy_at is None:
        return False
    return now - healthy_at > rules.removal_threshold


def is_our_turn(backend: Backend, rules: Lifecycle) -> bool:
    """Whether this pass is ours: one of all replicas gets each. Blocks."""
    return backend.put(TURN, "turn", "1", 0, 0.9 * rules.health_check_interval)


async def tick(
    backend: Backend,
    probe: Probe,
    rules: Lifecycle,
    *,
    skip: tuple[str, ...] = (),
    most: int | None = None,
) -> Seen:
    """Probe every worker with an endpoint, side by side, and act on what that shows. Workers
    whose ids begin with one of `skip` are another pass's. With `most`, only the first ones by id:
    metadata names endpoints too, without a registration that counts them."""
    run = asyncio.to_thread
    now = (await run(backend.observe, TURN, None, 1.0)).now  # by the store's clock
    found = await run(serving, backend)
    ours = (one for one in found if not one.worker_id.startswith(skip))
    workers = sorted(ours, key=lambda worker: worker.worker_id)[:most]
    limit = asyncio.Semaphore(AT_ONCE)

    async def look(worker: model.WorkerRecord) -> tuple[str, str]:
        try:
            async with limit:
                reached = await probe(str(worker.metadata["endpoint_url"]))
            return worker.worker_id, await run(note, backend, worker, reached, now=now, rules=rules)
        except SpratError:
            raise  # the store does not answer: the whole pass waits for the next turn
        except Exception:
            log.exception("the health of worker %s is not known", worker.worker_id)
            return worker.worker_id, ""

    seen = await asyncio.gather(*map(look, workers))
    return Seen(probed=len(seen), unavailable=_those(seen, "u"), removed=_those(seen, "r"))


def serving(backend: Backend) -> list[model.WorkerRecord]:
    """The workers that can be probed."""
    active = backend.workers(model.WorkerFilter(status=(model.ACTIVE, model.TERMINATING)))
    return [worker for worker in active if worker.metadata.get("endpoint_url")]


def note(
    backend: Backend,
    worker: model.WorkerRecord,
    reached: Reached | None,
    *,
    now: float,
    rules: Lifecycle,
) -> str:
    """Keep what a probe showed: "r" removed, "u" unavailable, "" well."""
    before = endpoint_workers.health(backend, worker.worker_id)
    if before.last_healthy_at is None:
        before = before.replace(last_healthy_at=worker.last_heartbeat)
    health = after(before, reached, now, rules)
    if is_gone(health, now, rules):
        endpoint_workers.end(backend, worker.worker_id, "unavailable for too long")
        log.warning("worker removed", extra={"facts": {"worker": worker.worker_id}})
        return "r"
    backend.put(
        endpoint_workers.HEALTH, worker.worker_id, jsontext.dumps(health.as_dict()), None, None
    )
    changed = None  # what it says of itself stays as it is
    if health.is_unavailable != before.is_unavailable:
        changed = jsontext.dumps({model.SUSPENDED: health.is_unavailable})
    if changed or not health.failures:
        ref = WorkerRef(worker_id=worker.worker_id, incarnation=worker.incarnation)
        backend.heartbeat(ref, changed, ())
    return "u" if health.is_unavailable else ""


def _text(value: object) -> str | None:
    return value[:200] if isinstance(value, str) else None


def _those(found: Iterable[tuple[str, str]], what: str) -> tuple[str, ...]:
    return tuple(worker_id for worker_id, outcome in found if outcome == what)
