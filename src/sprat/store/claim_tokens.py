"""The tokens of the claims that this process made, so that a claim can be settled by its item id.

All Store and WorkPool objects of one process that are open on the same store share them: one object
may claim an item and another one settle it. They are not shared between processes, but a forked
child has those of its parent.
"""

from __future__ import annotations

import _thread
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from sprat.core.model import WorkItem
    from sprat.store.backend import Backend

REMEMBERED_CLAIMS = 10_000  # at least this many of the latest claims can be settled by id
REMEMBERED_STORES = 100


class ClaimTokens:
    """Token by item id, of the latest claims."""

    def __init__(self) -> None:
        self._newer: dict[str, str | None] = {}
        self._older: dict[str, str | None] = {}

    def remember(self, items: Iterable[WorkItem]) -> None:
        newer = self._newer  # a thread that still writes here after the change below loses nothing
        for item in items:
            newer[item.id] = item.token
        if len(newer) > REMEMBERED_CLAIMS:
            with _changing:
                if self._newer is newer:
                    self._older, self._newer = newer, {}

    def token(self, item_id: str) -> str | None:
        return self._newer.get(item_id) or self._older.get(item_id)


_changing = _thread.allocate_lock()
_by_place: dict[str, ClaimTokens] = {}


def of_store(backend: Backend, url: str = "") -> ClaimTokens:
    """The tokens of the store behind this URL, or of this backend if no URL leads to its data."""
    if not url or url.startswith("memory:"):
        own: ClaimTokens = vars(backend).setdefault("claim_tokens", ClaimTokens())
        return own
    place = url.partition("?")[0] if url.startswith("sqlite:") else url
    with _changing:
        tokens = _by_place.pop(place) if place in _by_place else ClaimTokens()
        _by_place[place] = tokens  # last
        if len(_by_place) > REMEMBERED_STORES:
            del _by_place[next(iter(_by_place))]  # opened longest ago
    return tokens


if hasattr(os, "register_at_fork"):  # another thread may hold the lock while this one forks
    os.register_at_fork(
        before=_changing.acquire,
        after_in_parent=_changing.release,
        after_in_child=_changing.release,
    )
