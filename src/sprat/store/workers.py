"""Workers: the registry of one store. Checks input, calls the backend."""

from __future__ import annotations

from sprat.core import jsontext, model, payload
from sprat.core.errors import InvalidInput
from sprat.store.backend import Backend, ClaimRef
from sprat.store.pool import worker_ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Worker = model.WorkerRecord | str

MAX_LEASE_SECONDS = 86400.0


class Workers:
    """Who works for this store: registration, heartbeats, statuses."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def register(self, worker: model.WorkerRegistration) -> model.WorkerRecord:
        """Make the worker active. The same id again is a new incarnation: the old one can no
        longer settle anything, and its items are free. Leave if the answer is not `active`."""
        lease = payload.seconds(worker.lease_seconds, "lease_seconds", MAX_LEASE_SECONDS)
        if not lease:
            raise InvalidInput("lease_seconds must be more than 0")
        if isinstance(worker.capabilities, str):
            raise InvalidInput("capabilities must be a list of strings, not one string")
        payload.worker_id(worker.worker_id)
        if worker.pool_id is not None:
            payload.pool_name(worker.pool_id)
        capabilities = payload.capabilities(worker.capabilities)
        _metadata_text(worker.metadata)
        return self._backend.register(worker.replace(capabilities=capabilities))

    def heartbeat(
        self,
        worker: Worker,
        metadata: Mapping[str, Any] | None = None,
        *,
        holding: Sequence[model.WorkItem] = (),
    ) -> model.Heartbeat:
        """Extend the lease and merge metadata. The answer says what the worker is now, and
        which of the items it is `holding` are no longer its own."""
        claims = [ClaimRef(item_id=item.id, token=item.token) for item in holding]
        return self._backend.heartbeat(worker_ref(worker), _metadata_text(metadata), claims)

    def update_status(
        self,
        worker: Worker,
        status: str,
        *,
        reason: str | None = None,
        started: Sequence[str] | None = None,
    ) -> bool:
        """Move a worker forward; False when it is already further. `terminated` hands its
        items back uncharged, `lost` releases them as after a crash (`started`: the ids of
        those that had started, where somebody watched)."""
        if status not in model.WORKER_STATUSES:
            known = ", ".join(model.WORKER_STATUSES)
            raise InvalidInput(f"unknown worker status {status!r}: one of {known}")
        return self._backend.update_status(
            worker_ref(worker), status, reason=payload.error_text(reason), started=started
        )

    def get(self, worker_id: str) -> model.WorkerRecord | None:
        return self._backend.worker(payload.worker_id(worker_id))

    def reap(
        self, pool_id: str | None = None, *, threshold_seconds: float | None = None
    ) -> model.Reaped:
        """Mark stale workers lost and release their items. Stale: the lease has ended, or no
        heartbeat for `threshold_seconds`."""
        if pool_id is not None:
            payload.pool_name(pool_id)
        if threshold_seconds is not None:
            payload.seconds(threshold_seconds, "the threshold")
        return self._backend.reap(pool_id, threshold_seconds)

    def list(
        self,
        which: model.WorkerFilter | None = None,
        *,
        status: str | Sequence[str] | None = None,
        capability: str | None = None,
        stale_threshold_seconds: float | None = None,
        pool_id: str | None = None,
    ) -> list[model.WorkerRecord]:
        """The workers that fit the filter, oldest first."""
        if which is None:
            which = model.WorkerFilter(
                status=status,
                capability=capability,
                stale_threshold_seconds=stale_threshold_seconds,
                pool_id=pool_id,
            )
        return self._backend.workers(which)


def _metadata_text(metadata: Mapping[str, Any] | None) -> str | None:
    if metadata is None:
        return None
    text = payload.metadata(metadata)
    return text if jsontext.loads(text) else None
