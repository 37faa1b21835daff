"""Results: waiting for what became of an item."""

from __future__ import annotations

from sprat.core import extensions, model, payload
from sprat.core.errors import JobCancelled, JobFailed
from sprat.core.runtime import runtime
from sprat.tasks import default_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.store.store import Store

FIRST_PAUSE_SECONDS = 0.001
LONGEST_PAUSE_SECONDS = 0.05  # what a result may come late by; 20 reads a second are hardly felt
SLOWER = 1.25
FIRST_CALL_SECONDS = 0.2  # a result that comes sooner needs no look at the fleet
CALL_SECONDS = 5.0  # between two looks


def result(item_id: str, timeout: float | None = None, *, store: str | Store | None = None) -> Any:
    """The result of an item, as soon as it has one: waits for `timeout` seconds, or for ever.

    Raises JobFailed or JobCancelled when there will be none, TimeoutError when time is up. The wait
    also keeps the fleet going: workers that were killed are started again. A `timeout` of 0 only
    looks at the item.
    """
    limit = None if timeout is None else payload.seconds(timeout, "timeout")
    place = default_store.place(store)
    if not place.has_workers:
        limit = 0.0
    has_called = limit == 0
    began = runtime.monotonic()
    call_at = began + FIRST_CALL_SECONDS
    pause = FIRST_PAUSE_SECONDS
    while True:
        item = place.look(item_id)
        if item.status in model.FINISHED:
            return answer(item)
        waited = runtime.monotonic() - began
        is_over = limit is not None and waited >= limit
        # One call at least: on a busy machine the first look may take longer than the time-out.
        if not has_called if is_over else began + waited >= call_at:
            has_called = True
            call_at = began + waited + CALL_SECONDS
            _call(place.store, item.pool)
        if is_over:
            raise TimeoutError(f"item {item_id} is {item.status} after {waited:.3g} seconds")
        runtime.sleep(pause if limit is None else min(pause, limit - waited))
        pause = min(pause * SLOWER, LONGEST_PAUSE_SECONDS)


def answer(item: model.WorkItem) -> Any:
    """The result of a finished item, or the error that it ended with."""
    if item.status == model.DONE:
        return item.result
    if item.status == model.CANCELLED:
        raise JobCancelled(f"item {item.id} was cancelled", item_id=item.id, error=item.error)
    tries = f"{item.attempts} attempt{'' if item.attempts == 1 else 's'}"
    raise JobFailed(
        f"item {item.id} failed after {tries}: {item.error}", item_id=item.id, error=item.error
    )


def _call(store: Store, pool: str) -> None:
    """As a push does: have workers started, and dead ones noticed."""
    if store.url.startswith(("memory:", "http")):
        return
    extensions.load("event", "work_added")(store, pool)
