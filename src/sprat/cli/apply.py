"""`sprat apply`: the pools and triggers of sprat.yml, written to the store."""

from __future__ import annotations

import json
import os

from sprat.cli.arguments import CommandParser
from sprat.cli.main import DONE
from sprat.cli.output import document, talk
from sprat.cli.probe import complaint, doubts, missing_program
from sprat.cli.target import exists, start_fleet, url_of
from sprat.config import project_file
from sprat.config.trigger import LAMBDA
from sprat.core.did_you_mean import did_you_mean
from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings
from sprat.store.open_store import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sprat.config.trigger import Trigger
    from sprat.store.store import Store


def parser() -> CommandParser:
    made = CommandParser(prog="sprat apply")
    made.add_argument("file", metavar="FILE", nargs="?", default=project_file.FILE)
    made.add_argument("--dry-run", action="store_true", help="check and compare, write nothing")
    made.add_argument(
        "--no-import", action="store_true", help="do not import the handlers and look for programs"
    )
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    read = project_file.load(asked.file)
    if not read.pools and not read.triggers:
        raise InvalidInput(f"{asked.file} names no pools: there is nothing to apply")
    if not asked.no_import:
        _try(read, asked.file)
    for name, settings in read.pools.items():
        for doubt in doubts(settings):
            talk(f"sprat: warning: pools.{name}: {doubt}")
    url = url_of(asked.url, path=_names_the_store(asked.file, read))
    _check_pools_of(read, url, asked.file)
    resolved, machines = _machines(read, url)
    changes = apply(url, read.pools, dry_run=asked.dry_run)
    triggers = apply_triggers(url, resolved, dry_run=asked.dry_run)
    if asked.json:
        done = {"pools": changes, "triggers": triggers, "machines": machines}
        document({"file": asked.file, "dry_run": asked.dry_run, **done})
        return DONE
    would = "would be " if asked.dry_run else ""
    for name, keys in changes.items():
        print(f"{name}: {_changed(keys, would)}")
    for name, keys in triggers.items():
        machine = f"; machine {machines[name]}" if name in machines else ""
        print(f"trigger {name}: {_changed(keys, would)}{machine}")
    return DONE


def _try(read: project_file.Config, path: str) -> None:
    """What workers and triggers would run first: handlers are imported, programs looked for."""
    for name, settings in read.pools.items():
        if wrong := complaint(settings):
            raise InvalidInput(f"{path}: pools.{name}: {wrong}")
    for one in read.triggers:
        program = one.command[0] if one.command and one.type != LAMBDA else None
        if program and (wrong := missing_program(program, one.directory)):
            raise InvalidInput(f"{path}: trigger {one.name}: {wrong}")


def _changed(keys: Sequence[str], would: str) -> str:
    return f"{would}changed: {', '.join(keys)}" if keys else "unchanged"


def _machines(read: project_file.Config, url: str) -> tuple[Sequence[Trigger], dict[str, str]]:
    """The triggers with the machines that they run, and what those are by the trigger's name."""
    if not any(trigger.machine for trigger in read.triggers):
        return read.triggers, {}
    from sprat.cli import triggers_machines

    found = triggers_machines.resolved(read, url)
    return found, {one.name: triggers_machines.described(one) for one in found if one.machine}


def _names_the_store(path: str, read: project_file.Config) -> str:
    """The file to look into for a store: a trigger_registry.yml leaves that to sprat.yml."""
    beside = os.path.join(os.path.dirname(path), project_file.FILE)
    return beside if read.store is None and os.path.exists(beside) else path


def _check_pools_of(read: project_file.Config, url: str, path: str) -> None:
    """A trigger for a pool that is nowhere would fire for nothing."""
    strangers = [one for one in read.triggers if one.pool not in (None, *read.pools)]
    if not strangers:
        return
    known = set(read.pools)
    if exists(url):
        with open_store(url) as store:
            known.update(store.pools())
    for trigger in strangers:
        if trigger.pool not in known:
            first = ": push to it, or apply its settings, first"
            near = did_you_mean(trigger.pool, sorted(known)) if known else first
            raise InvalidInput(
                f"{path}: trigger {trigger.name} is for a pool that does not exist: "
                f"{trigger.pool}{near}"
            )


def apply(
    url: str, pools: Mapping[str, PoolSettings], *, dry_run: bool = False
) -> dict[str, list[str]]:
    """Write what differs; for each pool the names of the settings that did."""
    if dry_run and not exists(url):
        return {name: _differences({}, settings) for name, settings in pools.items()}
    with open_store(url) as store:
        return {name: _apply(store, name, pools[name], dry_run=dry_run) for name in pools}


def apply_triggers(
    url: str, triggers: Sequence[Trigger], *, dry_run: bool = False
) -> dict[str, list[str]]:
    """Write what differs; for each trigger the names of what did."""
    from sprat.triggers import registry

    if not triggers:
        return {}
    if dry_run and not exists(url):
        return {trigger.name: ["new"] for trigger in triggers}
    with open_store(url) as store:
        keep = registry.differences if dry_run else registry.save
        changes = {trigger.name: keep(store, trigger) for trigger in triggers}
        if not dry_run:
            registry.link(store)
    return changes


def _apply(store: Store, name: str, settings: PoolSettings, *, dry_run: bool) -> list[str]:
    pool = store.pool(name)
    state = pool.state()
    settings = settings.replace(events=state.settings.events)  # those of its triggers
    differences = _differences(_as_stored(state.settings) if state.version else {}, settings)
    if differences and not dry_run:
        pool.configure(**settings.as_dict())
    if not dry_run:
        start_fleet(store, name)  # for what was pushed before anybody could work on it
    return differences


def _differences(stored: dict[str, object], settings: PoolSettings) -> list[str]:
    """The names of what changes; for a new pool, of what is not as it is by default."""
    before = stored or _as_stored(PoolSettings())
    differing = [name for name, value in _as_stored(settings).items() if value != before[name]]
    return differing if stored else differing or ["new"]


def _as_stored(settings: PoolSettings) -> dict[str, object]:
    stored: dict[str, object] = json.loads(json.dumps(settings.as_dict()))
    return stored
