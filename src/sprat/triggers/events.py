"""Triggers: the outside cues that run a pass. Here is what a push needs; the rest is imported when
a trigger fires.

A push never waits for one: a trigger of type `subprocess` runs in a process of its own, one of type
`in_loop` in a thread of the program that pushed. Storms are coalesced (see coalesce.py).
"""

from __future__ import annotations

from sprat.core import jsontext, model
from sprat.core.errors import InvalidInput, SpratError
from sprat.fleet.launcher import open_launcher, require_processor
from sprat.scaling.launch_backoff import pause_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread

    from sprat.core.model import PoolSettings
    from sprat.store.store import Store

EMPTY = "pool-empty"  # documents: how many items were finished when a pool was last empty
GATHER_SECONDS = 0.2  # a storm of pushes runs a trigger in the loop once in this long
SAME_MOMENT_SECONDS = 60.0  # in which a pool with as many finished items has not moved


def work_added(store: Store, pool: str, settings: PoolSettings | None = None) -> bool:
    """After a push: start a scaling pass, unless one is on its way or none is needed. Does not
    wait for it. A thousand pushes in a row start a few. The items are stored, so the push has
    succeeded whatever happens here: what goes wrong is logged, and the next pass makes good.
    A caller that has just read the pool's settings hands them on."""
    try:
        settings = settings or store.pool(pool).state().settings
        return settings.start_on_push and _start_pass(store, pool, settings)
    except SpratError as error:
        _log(f"no workers were started for {pool}", error)
        return False


def happened(store: Store, event: str, pool: str, settings: PoolSettings) -> None:
    """Fire the triggers that wait for this event in this pool. What goes wrong is logged: the
    work and the other triggers go on."""
    try:
        if event == model.POOL_EMPTY and not _is_newly_empty(store, pool):
            return
    except SpratError as error:
        _log(f"no trigger was fired for {event} in {pool}", error)
        return
    for name in settings.events.get(event, ()):
        try:
            _cue(store, name, event, pool, settings)
        except SpratError as error:
            _log(f"trigger {name} was not fired for {event} in {pool}", error)


def _cue(store: Store, name: str, event: str, pool: str, settings: PoolSettings) -> None:
    from sprat.config.trigger import SUBPROCESS
    from sprat.triggers import firing, registry

    trigger = registry.stored(store, name)
    if trigger is None:
        return  # removed, and the pool's settings do not know yet
    if trigger.is_pass:
        require_processor(settings, pool)
    if trigger.is_pass and event == model.WORK_ADDED:
        if trigger.type == SUBPROCESS:
            _start_pass(store, pool, settings)
        elif store.backend.request_check(pool, settings.max_workers):
            _beside(store, lambda: firing.report(store, trigger, event, pool))
    elif not firing.ask(store, trigger, event, pool):
        return  # another process does it
    elif trigger.type == SUBPROCESS:
        firing.start(store, trigger, event, pool)
    elif event == model.WORK_ADDED:
        _beside(store, lambda: firing.answer(store, trigger, event, pool, pause=GATHER_SECONDS))
    else:  # seen by a worker that has nothing else to do, or by a pass
        firing.answer(store, trigger, event, pool)


def _start_pass(store: Store, pool: str, settings: PoolSettings) -> bool:
    require_processor(settings, pool)
    launcher = open_launcher(settings.launcher)
    if not _is_pass_needed(store, pool, settings):
        launcher.attend(store.url, pool, settings)
        return False
    try:
        launcher.start_pass(store.url, pool, settings)
    except SpratError:
        store.backend.begin_check(pool)  # it is not on its way: the next push has to try
        raise
    return True


def _is_pass_needed(store: Store, pool: str, settings: PoolSettings) -> bool:
    """Whether a pass would launch workers, as far as the store knows. What it knows may be about
    dead processes: where a pass is not needed, the pool is attended to."""
    if not store.backend.request_check(pool, settings.max_workers):
        return False
    from sprat.fleet import controller_lease

    if controller_lease.is_led(store.backend, pool):
        return False  # a controller sees it too, and knows what it may start
    return pause_left(store.pool(pool).observe()) <= 0  # or workers do not come to work


def _is_newly_empty(store: Store, pool: str) -> bool:
    """Whether nothing waits or runs, and no other process has noticed. Two workers that settle at
    the same moment both see an empty pool: of all that see as many finished items, one counts."""
    counts = store.pool(pool).counts()
    if counts.pending or counts.claimed:
        return False
    finished = str(counts.total - counts.backlog)
    seen = store.backend.document(EMPTY, pool)
    if seen is not None and seen.body == finished:
        return False
    version = 0 if seen is None else seen.version
    return store.backend.put(EMPTY, pool, finished, version, SAME_MOMENT_SECONDS)


# -- in the loop --------------------------------------------------------------------------------

_running: list[tuple[Store, Thread]] = []  # in this process, now


def _beside(store: Store, step: Callable[[], object]) -> None:
    """Run it in a thread of this process: the push does not wait for it, but the program does
    not end before it."""
    import threading

    def run() -> None:
        try:
            step()
        except SpratError as error:
            _log("a trigger failed", error)
        finally:
            _running.remove((store, thread))

    thread = threading.Thread(target=run, name="sprat trigger")
    _running.append((store, thread))
    thread.start()


def finish(store: Store | None = None) -> None:
    """Wait for the triggers that run in this process: before their store is closed, or before it
    leaves without Python's own goodbyes."""
    for used, thread in _running.copy():  # each takes itself off the list
        if store in (None, used):
            thread.join()


_refused: set[str] = set()  # sentences that this process has logged


def _log(what: str, error: SpratError) -> None:
    """A pool without a handler stays so for every push of a loop: that is logged once."""
    import logging

    sentence = f"{what}: {error}"
    if sentence not in _refused:
        logging.getLogger("sprat").warning("%s", jsontext.printable(sentence))
    if isinstance(error, InvalidInput):
        _refused.add(sentence)
