"""Many tiny jobs, one write: the items that a worker took ahead of their turn, and the settlements
that wait for its next step.

How many it takes grows while a batch is over quickly, up to what the pool allows. Nothing is held
for long: when a batch is not over after LET_GO_SECONDS, the heartbeat thread settles what is
done and hands back what has not begun (see heartbeat_thread.py).
"""

from __future__ import annotations

import _thread

from sprat.core import model
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BATCH_SECONDS = 0.05  # what a batch should take: others may be idle meanwhile
LET_GO_SECONDS = 0.1


class Prefetch:
    """Used by the worker's loop, and by its pulse while a job runs: hence the lock."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 1
        self._began = 0.0
        self._let_go = False
        self._lock = _thread.allocate_lock()
        self._items: list[model.WorkItem] = []  # the next one is the last
        self._settled: list[model.Settlement] = []

    def __bool__(self) -> bool:
        return bool(self._items or self._settled)

    def size(self, room: int | None) -> int:
        """How many items to claim next; `room` is how many more the worker may run."""
        self._adapt()
        return self._size if room is None else min(self._size, room)

    def begin(self, items: Sequence[model.WorkItem]) -> model.WorkItem | None:
        """A new batch: its first item."""
        self._began = runtime.monotonic()
        self._let_go = False
        if not items:
            return None
        if len(items) > 1:
            with self._lock:
                self._items = list(items[:0:-1])
        return items[0]

    def next(self) -> model.WorkItem | None:
        with self._lock:
            return self._items.pop() if self._items else None

    def settle(self, settlement: model.Settlement) -> None:
        with self._lock:
            self._settled.append(settlement)

    def take(self) -> list[model.Settlement]:
        """The settlements to send now."""
        with self._lock:
            settled, self._settled = self._settled, []
        return settled

    def take_all(self) -> list[model.Settlement]:
        """The same, and all that has not begun is handed back."""
        with self._lock:
            settled, self._settled = self._settled, []
            items, self._items = self._items, []
        self._let_go = True
        return settled + [
            model.Settlement(item_id=item.id, token=item.token, outcome=model.HAND_BACK)
            for item in items
        ]

    def restore(self, settlements: Iterable[model.Settlement]) -> None:
        """They could not be sent."""
        with self._lock:
            self._settled[:0] = settlements

    def _adapt(self) -> None:
        seconds = runtime.monotonic() - self._began
        if self._let_go or seconds > LET_GO_SECONDS:
            self._size = 1
        elif seconds > BATCH_SECONDS:
            self._size = max(1, self._size // 2)
        elif seconds < BATCH_SECONDS / 2:
            self._size = min(2 * self._size, self._most)
