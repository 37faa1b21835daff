"""Storms: of many cues for the same thing, a few runs, none of them too early for the last cue.

A cue leaves a mark (*asked*) in the store. Who leaves it has to start a run, all others find it and
go. A run takes the mark away before it begins: whoever has a cue from then on leaves a new one.
Only one run goes on at a time. Who runs pauses, lets go, and only then looks for marks again: a
mark that was left while somebody ran needs nobody else. So every cue is followed by a run that
began after it, and a storm is answered once a pause, by one process.
"""

from __future__ import annotations

from collections.abc import Callable

from sprat.core import payload
from sprat.core.model import Document
from sprat.core.runtime import runtime
from sprat.store.store import Store

ASKED = "trigger-asked"
RUNNING = "trigger-running"
ASKED_SECONDS = 60.0  # a run that has not begun by then never will: the next cue starts another
GRACE_SECONDS = 30.0  # beyond its time limit, before a run is taken for dead


def key_of(*parts: str) -> str:
    """A short name for what is asked for: documents have names of up to 128 characters."""
    whole = "/".join(parts)
    if len(whole) <= payload.MAX_NAME_CHARS:
        return whole
    import hashlib

    return hashlib.sha256(whole.encode()).hexdigest()


def ask(store: Store, key: str, *, limit: float) -> bool:
    """Leave a mark; True for the one who has to start a run."""
    if store.backend.document(ASKED, key) is not None:
        return False
    if not store.backend.put(ASKED, key, "{}", 0, ASKED_SECONDS):
        return False
    if store.backend.document(RUNNING, key) is None:
        return True
    mark = store.backend.document(ASKED, key)
    if mark is not None:
        _keep(store, key, mark, limit)
    return False


def answer(
    store: Store, key: str, run: Callable[[], None], *, limit: float, pause: float = 0.0
) -> int:
    """Run as long as there are marks, unless somebody else does; how often it ran here. Each run
    takes `limit` seconds at most, and is followed by a pause in which cues gather."""
    runs = 0
    while (mark := store.backend.document(ASKED, key)) is not None:
        token = payload.encode(payload.new_id(), "token")
        if not store.backend.put(RUNNING, key, token, 0, limit + pause + GRACE_SECONDS):
            _keep(store, key, mark, limit)
            break
        try:
            if _take(store, key):
                runs += 1
                run()
                runtime.sleep(pause)
        finally:
            _let_go(store, key, token)
    return runs


def _keep(store: Store, key: str, mark: Document, limit: float) -> None:
    """Somebody runs, and will find the mark: it has to last until then."""
    store.backend.put(ASKED, key, mark.body, mark.version, limit + GRACE_SECONDS)


def _take(store: Store, key: str) -> bool:
    mark = store.backend.document(ASKED, key)
    return mark is not None and store.backend.put(ASKED, key, None, mark.version, None)


def _let_go(store: Store, key: str, token: str) -> None:
    held = store.backend.document(RUNNING, key)
    if held is not None and held.body == token:
        store.backend.put(RUNNING, key, None, held.version, None)
