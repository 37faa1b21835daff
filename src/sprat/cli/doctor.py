"""`sprat doctor`: is everything there that a fleet needs? A line each: ok, warn or FAIL."""

from __future__ import annotations

import os
import sys

from sprat.cli import blockers
from sprat.cli.arguments import CommandParser
from sprat.cli.main import DONE, FAILED
from sprat.cli.output import GREEN, RED, YELLOW, document, duration, number, one_line, paint
from sprat.cli.probe import complaint, doubts
from sprat.cli.target import exists, sqlite_file, store_now, url_of
from sprat.config import project_file
from sprat.config.probe_settings import UNWATCHED
from sprat.core import model
from sprat.core.errors import SpratError
from sprat.core.record import Record
from sprat.fleet.launcher import open_launcher
from sprat.store.open_store import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sprat.store.store import Store

OK, WARN, FAIL = "ok", "warn", "FAIL"
COLOURS = {OK: GREEN, WARN: YELLOW, FAIL: RED}
SAFE_SQLITE = (3, 51, 3)  # older ones can corrupt a WAL database that several connections use
FULL_BYTES = 1 << 20  # less is left
LITTLE_BYTES = 100 << 20
SKEW_SECONDS = 5.0


class Finding(Record):
    """One thing that was looked at."""

    check: str
    state: str
    detail: str


def parser() -> CommandParser:
    return CommandParser(prog="sprat doctor")


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    found = []
    for finding in examine(url_of(asked.url)):
        found.append(finding)
        if not asked.json:
            state = paint(f"{finding.state:<4}", COLOURS[finding.state])
            print(f"{state}  {finding.check:<10}  {one_line(finding.detail)}")
    has_failed = any(finding.state == FAIL for finding in found)
    if asked.json:
        document({"ok": not has_failed, "checks": found})
    return FAILED if has_failed else DONE


def examine(url: str) -> Iterator[Finding]:
    """Everything that there is to find out, in the order in which it matters."""
    yield from _file()
    if not exists(url):
        how = "`sprat apply` or `sprat push --create` makes it"
        missing = f"{sqlite_file(url)} does not exist yet: {how}"
        yield Finding(check="store", state=FAIL, detail=missing)
        return
    try:
        store = open_store(url)
    except SpratError as error:
        yield Finding(check="store", state=FAIL, detail=str(error))
        return
    with store:
        yield from _store(store)
        yield from _fleet(store)
        yield from _triggers(store)
        for pool in store.pools():
            yield from _pool(store, pool)


def _file() -> Iterator[Finding]:
    if not os.path.exists(project_file.FILE):
        detail = "none here: the store has the settings"
        yield Finding(check="sprat.yml", state=OK, detail=detail)
        return
    try:
        read = project_file.load(project_file.FILE)
    except SpratError as error:
        yield Finding(check="sprat.yml", state=FAIL, detail=str(error))
        return
    pools = number(len(read.pools), "pool")
    yield Finding(check="sprat.yml", state=OK, detail=f"{pools}, nothing wrong")
    if read.worker_lifecycle.is_in_vain:
        yield Finding(check="lifecycle", state=WARN, detail=UNWATCHED)


def _store(store: Store) -> Iterator[Finding]:
    about = store.describe()
    if about["kind"] == "redis":
        yield from _redis(about)
        yield _clock(store)
        return
    if about["kind"] == "postgresql":
        yield from _postgres(about)
        yield _clock(store)
        return
    if about["kind"] == "http":
        detail = f"{about['where']}, an orchestrator over {about['behind']}"
        yield Finding(check="store", state=OK, detail=detail)
        yield _clock(store)
        return
    where = about.get("path", about["kind"])
    yield Finding(check="store", state=OK, detail=f"{where}, schema {about.get('schema')}")
    if about["kind"] == "sqlite":
        version = tuple(int(part) for part in str(about["sqlite"]).split("."))
        state = OK if version >= SAFE_SQLITE else FAIL
        detail = f"{about['sqlite']} ({about['driver']})"
        detail += "" if state == OK else ": can corrupt the store, upgrade apsw"
        yield Finding(check="sqlite", state=state, detail=detail)
        mode = os.stat(str(where)).st_mode & 0o077
        detail = "only its owner can read it" if not mode else "others than its owner can read it"
        yield Finding(check="file", state=WARN if mode else OK, detail=detail)
        yield _disk(str(where))
    yield Finding(check="durability", state=OK, detail=f"synced to disk: {about.get('synced')}")
    yield _clock(store)


def _disk(path: str) -> Finding:
    about = os.statvfs(path)
    free = about.f_bavail * about.f_frsize
    if free < FULL_BYTES:
        return Finding(check="disk", state=FAIL, detail="full: nothing can be pushed or finished")
    state = WARN if free < LITTLE_BYTES else OK
    return Finding(check="disk", state=state, detail=f"{free / 1e6:,.0f} MB free")


def _postgres(about: dict[str, object]) -> Iterator[Finding]:
    where = f"{about['url']}, schema {about['schema_name']!r} version {about['schema']}"
    yield Finding(check="store", state=OK, detail=where)
    detail = f"{about['postgresql']} ({about['driver']})"
    detail += ", behind a pooler: idle workers look ten times a second" if about["pooled"] else ""
    yield Finding(check="postgresql", state=OK, detail=detail)
    state = OK if about["may_write"] else FAIL
    detail = "may read and write" if about["may_write"] else "may not write: grant it"
    yield Finding(check="permission", state=state, detail=f"{about['user']} {detail}")
    for name in ("fsync", "full_page_writes"):
        if about[name] != "on":
            detail = f"{name} is {about[name]}: a crash of the server can lose or damage the store"
            yield Finding(check="durability", state=FAIL, detail=detail)
    detail = f"synced to disk: {about['synced']}, synchronous_commit {about['synchronous_commit']}"
    yield Finding(check="durability", state=OK if about["fsync"] == "on" else FAIL, detail=detail)


def _redis(about: dict[str, object]) -> Iterator[Finding]:
    yield Finding(check="store", state=OK, detail=f"{about['where']}, {about['server']}")
    role = about["role"]
    if role not in ("master", "unknown"):
        yield Finding(check="role", state=FAIL, detail=f"a {role}, which cannot be written")
    dangers = about["dangers"]
    assert isinstance(dangers, list)
    for danger in dangers:
        yield Finding(check="durability", state=FAIL, detail=danger)
    if not dangers:
        known = f"append-only file {about['aof']}, synced {about['fsync']}"
        state = WARN if about["aof"] == "unknown" else OK
        detail = f"{known}, eviction {about['eviction']}"
        yield Finding(check="durability", state=state, detail=detail)


def _clock(store: Store) -> Finding:
    ahead = store_now(store) - _wall()
    state = OK if abs(ahead) < SKEW_SECONDS else WARN
    which = "agrees with" if state == OK else f"is {duration(abs(ahead))} off"
    return Finding(check="clock", state=state, detail=f"the store's clock {which} this machine's")


def _wall() -> float:
    import time

    return time.time()


def _fleet(store: Store) -> Iterator[Finding]:
    now = store_now(store)
    live = store.workers.list(status=model.LIVE)
    stale = [worker for worker in live if worker.lease_until < now]
    if stale:
        detail = (
            f"{number(len(stale), 'worker')} without a heartbeat: `sprat reap` frees their jobs"
        )
        yield Finding(check="workers", state=WARN, detail=detail)
    else:
        yield Finding(check="workers", state=OK, detail=f"{len(live)} there, none stale")
    if renewed := sum(worker.renewals > 0 for worker in live):
        detail = f"{renewed} of them {'has' if renewed == 1 else 'have'} a fresh lease since an "
        detail += "outage of the store, and no heartbeat since then"
        yield Finding(check="workers", state=OK, detail=detail)


def _triggers(store: Store) -> Iterator[Finding]:
    from sprat.triggers import firing, registry

    triggers = registry.every(store)
    for trigger in triggers:
        if problem := firing.problem(store, trigger):
            detail = f"{trigger.name} cannot run: {problem}"
            yield Finding(check="triggers", state=WARN, detail=detail)
    late = registry.overdue(store)
    if late:
        name, seconds = late[0]
        detail = f"{name} was due {duration(seconds)} ago and nobody ticked: sprat triggers install"
        yield Finding(check="triggers", state=WARN, detail=detail)
    elif triggers:
        yield Finding(check="triggers", state=OK, detail=f"{len(triggers)} there, none overdue")


def _pool(store: Store, name: str) -> Iterator[Finding]:
    settings = store.pool(name).state().settings
    seen = store.pool(name).observe()
    program = settings.command[0] if settings.command else None
    what = settings.handler or settings.machine or program
    yield from _waiting(store, name, seen, settings)
    if what is None:
        state = WARN if seen.counts.pending else OK
        yield Finding(check=name, state=state, detail="no handler and no command in its settings")
        return
    if settings.launcher == "process":  # elsewhere it is not here that it is run
        wrong = complaint(settings)
        found = f"{what} can be run" if wrong is None else wrong
        yield Finding(check=name, state=FAIL if wrong else OK, detail=found)
    yield from _launcher(name, settings)
    yield from (Finding(check=name, state=WARN, detail=doubt) for doubt in doubts(settings))
    if seen.launch_failures:
        detail = f"{seen.launch_failures} launches in a row failed: `sprat explain {name}`"
        yield Finding(check=name, state=WARN, detail=detail)
    if seen.counts.ready and not seen.workers and not seen.paused:
        detail = f"{seen.counts.ready} ready and no worker: `sprat check {name}` starts some"
        yield Finding(check=name, state=WARN, detail=detail)
    if seen.counts.poisoned:
        detail = f"{seen.counts.poisoned} failed: `sprat jobs list {name} --status failed`"
        yield Finding(check=name, state=WARN, detail=detail)


def _waiting(
    store: Store, name: str, seen: model.Snapshot, settings: model.PoolSettings
) -> Iterator[Finding]:
    """What keeps jobs waiting that workers alone do not end."""
    if seen.paused:
        detail = blockers.pause(seen.paused_seconds, seen.pause_reason)
        yield Finding(check=name, state=WARN, detail=f"{detail}; `sprat resume {name}` ends that")
    for sentence in blockers.held(seen.parked):
        advice = f"deploy code that has it, or cancel them: `sprat jobs list {name}`"
        yield Finding(check=name, state=WARN, detail=f"{sentence}; {advice}")
    items = blockers.retrying(store.pool(name), seen.counts)
    bound = settings.max_transient
    if close := [item for item in items if blockers.is_close(item, bound)]:
        yield Finding(check=name, state=WARN, detail=_close_to_bound(close, bound))


def _close_to_bound(items: Sequence[model.WorkItem], bound: int | None) -> str:
    worst = items[0]
    which = f"such as {worst.id} with {blockers.transients(worst, bound)} transient failures"
    error = (worst.error or "no error kept").partition("\n")[0]
    return f"{number(len(items), 'job')} near or past max_transient, {which}: {error}"


def _launcher(pool: str, settings: model.PoolSettings) -> Iterator[Finding]:
    name = settings.launcher
    try:
        wrong = open_launcher(name).complaint(settings)
    except SpratError as error:
        yield Finding(check=pool, state=FAIL, detail=str(error))
        return
    if wrong is not None:
        yield Finding(check=pool, state=FAIL, detail=wrong)
        return
    if name == "process" and not (os.access("/bin/sh", os.X_OK) and sys.executable):
        yield Finding(check=pool, state=FAIL, detail="workers need /bin/sh and a Python to start")
        return
    yield Finding(check=pool, state=OK, detail=f"launcher {name} is usable")
