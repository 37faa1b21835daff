"""Which item is next: ready items in lanes by tenant and group; delayed ones by time.

Both are heaps with lazy deletion: an entry that is no longer true (its item was cancelled, say) is
thrown away when it comes to the front. `Item.queued` keeps it to one entry an item.
"""

from __future__ import annotations

import heapq

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sprat.store.memory.item import Item

    Lane = list[tuple[int, int, Item]]  # a heap by priority and order of arrival


class ReadyQueue:
    """The items that could be claimed now."""

    def __init__(self) -> None:
        self._lanes: dict[str | None, dict[str | None, Lane]] = {}  # by tenant and group

    def __iter__(self) -> Iterator[Item]:
        for groups in self._lanes.values():
            for lane in groups.values():
                yield from (item for _, _, item in lane if item.ready)

    def add(self, item: Item) -> None:
        if item.queued:
            return
        item.queued = True
        lane = self._lanes.setdefault(item.tenant, {}).setdefault(item.group, [])
        heapq.heappush(lane, (-item.priority, item.number, item))

    def best(
        self,
        capabilities: Sequence[str],
        has_room: Callable[[str | None], bool],
        turns: Mapping[str | None, int],
    ) -> Item | None:
        """The eligible item that is next. It stays here until it is seen to be no longer ready."""
        heads = [
            (rank, turns.get(tenant, 0), number, item)
            for tenant in [tenant for tenant in self._lanes if has_room(tenant)]
            for rank, number, item in self._heads(tenant, {None, *capabilities})
        ]
        return min(heads)[3] if heads else None

    def _heads(self, tenant: str | None, names: set[str | None]) -> list[tuple[int, int, Item]]:
        """Of each of these groups, the item that is first."""
        groups = self._lanes[tenant]
        heads = [head for group in names if (head := _head(groups, group))]
        if not groups:
            del self._lanes[tenant]
        return heads


def _head(groups: dict[str | None, Lane], group: str | None) -> tuple[int, int, Item] | None:
    lane = groups.get(group)
    while lane and not lane[0][2].ready:
        heapq.heappop(lane)[2].queued = False
    if lane:
        return lane[0]
    groups.pop(group, None)
    return None


class DelayedQueue:
    """Pending items whose time is still to come."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Item]] = []

    def __iter__(self) -> Iterator[Item]:
        return (item for ready_at, _, item in self._heap if _is_delayed(item, ready_at))

    def add(self, item: Item) -> None:
        heapq.heappush(self._heap, (item.ready_at, item.number, item))

    def due(self, now: float) -> Iterator[Item]:
        """Take out the items whose time has come."""
        while self._heap and self._heap[0][0] <= now:
            ready_at, _, item = heapq.heappop(self._heap)
            if _is_delayed(item, ready_at):
                yield item


def _is_delayed(item: Item, ready_at: float) -> bool:
    """Whether the entry is true: the item may have been cancelled, or delayed anew."""
    return item.delayed and item.ready_at == ready_at
