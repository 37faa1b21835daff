"""Claims whose answer was lost in an outage that outlasted the patience of the connection.

The store may have handed out items that the worker never heard of. The worker's next claim
repeats the request by its name, so it gets those items; without that they would stay claimed until
the worker leaves.
"""

from __future__ import annotations

from sprat.core import model
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.backend import Backend, WorkerRef

MOST = 1000  # requests remembered: workers that never come back must not fill the memory


class LostClaims:
    """The requests of one process without an answer, by pool and worker."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, WorkerRef | None], tuple[str, int]] = {}

    def request(self, pool: str, worker: WorkerRef | None, claim: int) -> tuple[str, int, bool]:
        """The name of the request to send, how many items it claims, and whether it may have been
        carried out before."""
        if claim and self._requests:
            found = self._requests.get((pool, worker))
            if found is not None:
                return found[0], max(claim, found[1]), True
        return runtime.random_bytes(8).hex(), claim, False

    def keep(self, pool: str, worker: WorkerRef | None, name: str, claim: int) -> None:
        """No answer came to this request."""
        if claim:
            self._requests[pool, worker] = name, claim
            if len(self._requests) > MOST:
                del self._requests[next(iter(self._requests))]

    def answered(
        self,
        backend: Backend,
        pool: str,
        worker: WorkerRef | None,
        claim: int,
        answer: model.Exchange,
    ) -> model.Exchange:
        """The answer to a repeated request: more items than `claim` are handed back."""
        self._requests.pop((pool, worker), None)
        more = [
            model.Settlement(item_id=item.id, token=item.token, outcome=model.HAND_BACK)
            for item in answer.items[claim:]
        ]
        if not more:
            return answer
        backend.exchange(pool, settlements=more)
        return answer.replace(items=answer.items[:claim])
