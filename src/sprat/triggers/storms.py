"""Storms: of many cues for the same thing, a few runs, none of them too early for the last cue.

A cue leaves a mark (*asked*) in the store. Who leaves it has to start a run, all others find it and
go. A run takes the mark away before it begins: whoever has a cue from then on leaves a new one.
Only one run goes on at a time: one that finds another leaves its mark, and the other looks for
marks after it has let go. So every cue is followed by a run that began after it.
"""

from __future__ import annotations

from sprat import payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sprat.store import Store

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


def ask(store: Store, key: str) -> bool:
    """Leave a mark; True for the one who has to start a run."""
    if store.backend.document(ASKED, key) is not None:
        return False
    return store.backend.put(ASKED, key, "{}", 0, ASKED_SECONDS)


def answer(store: Store, key: str, run: Callable[[], None], *, limit: float) -> int:
    """Run as long as there are marks, unless somebody else does; how often it ran here. Each run
    takes `limit` seconds at most."""
    runs = 0
    while (mark := store.backend.document(ASKED, key)) is not None:
        token = payload.encode(payload.new_id(), "token")
        if not store.backend.put(RUNNING, key, token, 0, limit + GRACE_SECONDS):
            # Somebody runs, and will find the mark: it has to last until then.
            store.backend.put(ASKED, key, mark.body, mark.version, limit + GRACE_SECONDS)
            break
        try:
            if _take(store, key):
                runs += 1
                run()
        finally:
            _let_go(store, key, token)
    return runs


def _take(store: Store, key: str) -> bool:
    mark = store.backend.document(ASKED, key)
    return mark is not None and store.backend.put(ASKED, key, None, mark.version, None)


def _let_go(store: Store, key: str, token: str) -> None:
    held = store.backend.document(RUNNING, key)
    if held is not None and held.body == token:
        store.backend.put(RUNNING, key, None, held.version, None)
