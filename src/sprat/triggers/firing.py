"""Firing a trigger: a scaling pass, a reaper's pass, a machine or a command, with a time limit.

A machine or command runs in a process group of its own that is killed when its time is over. It
gets the trigger's input as JSON on its standard input, with the event and the pool in
it, and of the environment what workers get. What it prints goes to standard error.

    python -m sprat.triggers.firing NAME EVENT [POOL]       the store's URL is in SPRAT_URL
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sprat.config.trigger import REAPER, Trigger
from sprat.core import jsontext, model, payload
from sprat.core.errors import InvalidInput, SpratError
from sprat.core.record import Record
from sprat.core.retry_rules import stopped_after
from sprat.fleet import checker, reaper
from sprat.fleet.launcher import require_processor
from sprat.launchers.process.launcher import environment, run_apart
from sprat.store.open_store import open_store
from sprat.store.store import Store
from sprat.triggers import coalesce, registry

BY_HAND = "fired"  # the event of a trigger that somebody fired
MOST_WORKERS = 100_000
PAUSE_SECONDS = 1.0  # a storm of events runs a trigger in its own process once in so long


class Fired(Record):
    """What firing a trigger did, or why it failed."""

    trigger: str
    event: str
    pool: str | None = None
    ok: bool = True
    said: str = ""
    refused: bool = False  # nothing was tried: the trigger, its input or its pool must be changed


def fire(
    store: Store,
    trigger: Trigger,
    *,
    event: str = BY_HAND,
    pool: str | None = None,
    extra: Mapping[str, Any] | None = None,
    limit: float | None = None,
) -> Fired:
    """Do what the trigger is for, and wait for it, `limit` or its own time limit. What goes wrong
    is in the answer."""
    about = Fired(trigger=trigger.name, event=event, pool=trigger.pool or pool)
    given = {**trigger.input, **(extra or {}), "event": event}
    if about.pool is not None:
        given["pool_id"] = about.pool
    seconds = trigger.timeout_seconds if limit is None else min(limit, trigger.timeout_seconds)
    try:
        if trigger.is_pass or trigger.machine == REAPER:
            step = _check if trigger.is_pass else _reap
            return about.replace(said=_within(limit, lambda: step(store, about.pool, given)))
        return _run(store, trigger, about, given, seconds)
    except SpratError as error:
        refused = isinstance(error, InvalidInput)
        return about.replace(ok=False, said=str(error), refused=refused)


def problem(store: Store, trigger: Trigger) -> str | None:
    """Why the trigger would be refused, if it would be; it is not fired."""
    if trigger.is_pass and trigger.pool is not None:
        try:
            require_processor(store.pool(trigger.pool).state().settings, trigger.pool)
        except InvalidInput as error:
            return str(error)
    return None


# -- for events: coalesced ----------------------------------------------------------------------


def ask(store: Store, trigger: Trigger, event: str, pool: str) -> bool:
    """Leave a mark for an event; True for the one who has to `start` or `answer` it."""
    return coalesce.ask(store, _key(trigger, event, pool), limit=trigger.timeout_seconds)


def start(store: Store, trigger: Trigger, event: str, pool: str) -> None:
    """Answer in a process of its own, and do not wait for it."""
    if not store.url or store.url.startswith("memory:"):
        raise InvalidInput("a memory store has no other process: use a trigger of type in_loop")
    begin = "import sys; from sprat.triggers.firing import main; sys.exit(main())"
    run_apart(
        [sys.executable, "-P", "-c", begin, trigger.name, event, pool],
        environment(store.url, store.pool(pool).state().settings),
    )


def answer(store: Store, trigger: Trigger, event: str, pool: str, *, pause: float = 0.0) -> int:
    """Fire as long as there are marks for it; how often."""
    return coalesce.answer(
        store,
        _key(trigger, event, pool),
        lambda: report(store, trigger, event, pool),
        limit=trigger.timeout_seconds,
        pause=pause,
    )


def report(store: Store, trigger: Trigger, event: str, pool: str) -> None:
    """Fire where nobody is there to read an answer: what went wrong is logged."""
    fired = fire(store, trigger, event=event, pool=pool)
    if not fired.ok:
        import logging

        said = jsontext.printable(fired.said)
        logging.getLogger("sprat").warning("trigger %s failed: %s", fired.trigger, said)


def main() -> int:
    url = os.environ.get("SPRAT_URL", "")
    if len(sys.argv) != 4 or not url:
        raise InvalidInput("usage: python -m sprat.triggers.firing NAME EVENT POOL")
    name, event, pool = sys.argv[1:]
    with open_store(url) as store:
        trigger = registry.stored(store, name)
        if trigger is not None:
            answer(store, trigger, event, pool, pause=PAUSE_SECONDS)
    return 0


def _key(trigger: Trigger, event: str, pool: str) -> str:
    return coalesce.key_of(trigger.name, event, pool)


# -- what it does -------------------------------------------------------------------------------


def _within(limit: float | None, step: Callable[[], str]) -> str:
    """Run a pass here. Where somebody's time is limited it is not waited for longer than that."""
    if limit is None:
        return step()
    import threading

    said: list[str] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            said.append(step())
        except Exception as error:  # noqa: BLE001  (raised again by who waits)
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit)
    if failed:
        raise failed[0]
    if not said:
        raise SpratError(f"the pass was not over after {limit:.1f} seconds")
    return said[0]


def _check(store: Store, pool: str | None, given: Mapping[str, Any]) -> str:
    most = given.get("max_workers")
    if most is not None:
        payload.whole(most, "input.max_workers", 0, MOST_WORKERS)
    if pool is not None:
        require_processor(store.pool(pool).state().settings, pool)
    pools = _workable(store) if pool is None else [pool]
    done = [checker.check(store, name, max_workers=most) for name in pools]
    return "; ".join(f"{one.pool}: {one.reason}" for one in done) or "there is no pool to check"


def _workable(store: Store) -> list[str]:
    return [name for name in store.pools() if store.pool(name).state().settings.has_processor]


def _reap(store: Store, pool: str | None, given: Mapping[str, Any]) -> str:
    threshold = given.get("stale_threshold_seconds")
    reaped = reaper.reap(store, pool, threshold_seconds=threshold)
    return f"{len(reaped.workers)} workers lost, {reaped.released} items freed"


def _run(
    store: Store, trigger: Trigger, about: Fired, given: Mapping[str, Any], seconds: float
) -> Fired:
    text = jsontext.dumps(given)
    settings = store.pool(about.pool).state().settings if about.pool else model.PoolSettings()
    env = {
        **environment(store.url, settings),
        "SPRAT_TRIGGER": trigger.name,
        "SPRAT_EVENT": about.event,
        "SPRAT_POOL": about.pool or "",
    }
    command = list(trigger.command or _machine(trigger))
    said = run_limited(command, text=text, env=env, directory=trigger.directory, seconds=seconds)
    if trigger.machine:
        said = said.replace(command[0], f"the machine {trigger.machine}")
    return about.replace(ok=not said, said=said or "done")


def _machine(trigger: Trigger) -> list[str]:
    """Its input comes on standard input: every user of the machine can read command lines."""
    begin = [sys.executable, "-P", "-m", "sprat.run", "--machine", str(trigger.machine)]
    return [*begin, "--input", "-", "--execution-id", payload.new_id()]


def run_limited(
    command: Sequence[str],
    *,
    text: str,
    env: Mapping[str, str],
    directory: str | None,
    seconds: float,
) -> str:
    """Run a program to its end, or to the end of its time; what went wrong, or nothing."""
    import signal
    import subprocess

    from sprat.worker.signals import Signals

    told: list[bool] = []
    try:
        with Signals(lambda: told.append(True)):  # it runs before it is known whom to stop
            started = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=2,
                text=True,
                env=env,
                cwd=directory,
                start_new_session=True,
            )
        with started as process:
            try:
                if told:
                    raise KeyboardInterrupt
                process.communicate(text, timeout=seconds)
            except BaseException as error:  # also Ctrl-C, which does not reach another session
                os.killpg(process.pid, signal.SIGKILL)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                return stopped_after(seconds)
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror}"
    return f"{command[0]} exited with code {process.returncode}" if process.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
