"""Who is sent away when a fleet shrinks: workers by name, those with nothing to do first. Pure."""

from __future__ import annotations

from sprat.core.model import ACTIVE, STARTING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from sprat.core.model import WorkerRecord


def fleet(workers: Iterable[WorkerRecord]) -> list[WorkerRecord]:
    """Those that count: starting and active. Who is leaving counts no more."""
    return [worker for worker in workers if worker.status in (STARTING, ACTIVE)]


def is_busy(worker: WorkerRecord) -> bool:
    return worker.claims > 0


def choose(workers: Iterable[WorkerRecord], n: int, *, spare_busy: bool) -> tuple[str, ...]:
    """Up to n of the fleet: launches that have not arrived, then the idle, then the busy (none of
    them if they are to be spared); of equals the one that came last."""
    willing = [w for w in fleet(workers) if not (spare_busy and is_busy(w))]
    chosen = sorted(willing, key=_reluctance)[: max(0, n)]
    return tuple(worker.worker_id for worker in chosen)


def _reluctance(worker: WorkerRecord) -> tuple[bool, bool, float, str]:
    return is_busy(worker), worker.status == ACTIVE, -worker.started_at, worker.worker_id
