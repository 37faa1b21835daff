"""Triggers: the outside cues that run a pass."""

from __future__ import annotations

from sprat.errors import SpratError
from sprat.launchers.process import start_nest
from sprat.scaling.brake import pause_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store import Store


def work_added(store: Store, pool: str) -> bool:
    """After a push: start a scaling pass, unless one is on its way or nobody is needed. Does not
    wait for it. A thousand pushes in a row start a few. The items are stored, so the push has
    succeeded whatever happens here: what goes wrong is logged, and the next pass makes good."""
    try:
        settings = store.pool(pool).state().settings
        if not settings.start_on_push:
            return False
        if not store.backend.request_check(pool, settings.max_workers):
            return False
        if pause_left(store.pool(pool).observe()) > 0:
            return False  # workers do not come to work: a nest tries again when it is time
        start_nest(store.url, pool, settings)
        return True
    except SpratError as error:
        import logging

        logging.getLogger("sprat").warning("no workers were started for %s: %s", pool, error)
        return False
