"""Triggers: the outside cues that run a pass."""

from __future__ import annotations

from sprat.launchers.process import start_nest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store import Store


def work_added(store: Store, pool: str) -> bool:
    """After a push: start a scaling pass, unless one is on its way or nobody is needed. Does not
    wait for it. A thousand pushes in a row start a few."""
    settings = store.pool(pool).state().settings
    if not settings.start_on_push:
        return False
    if not store.backend.request_check(pool, settings.max_workers):
        return False
    start_nest(store.url, pool, settings)
    return True
