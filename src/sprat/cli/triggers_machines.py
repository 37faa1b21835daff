"""Which machine a trigger's `machine` names: decided by `sprat apply`, and stored with the trigger.

The order is that of machines that call each other: a name in the `machines` of the trigger's pool,
a file of that name in the trigger's directory, a machine that comes with sprat.
"""

from __future__ import annotations

import os

from sprat.cli.target import exists
from sprat.config.trigger import CHECKER, REAPER
from sprat.machines.library import ENDINGS, OURS, Library
from sprat.store.open_store import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from sprat.config.project_file import Config
    from sprat.config.trigger import Trigger
    from sprat.core.model import PoolSettings

BUILT_IN = (CHECKER, REAPER)  # names that do not run a file


def resolved(read: Config, url: str) -> tuple[Trigger, ...]:
    """The triggers of a file, each with the machine that it runs; InvalidInput if one is wrong."""
    pools = _settings(read, url)
    return tuple(
        trigger if trigger.machine is None else trigger.replace(machine=_machine(trigger, pools))
        for trigger in read.triggers
    )


def described(trigger: Trigger) -> str:
    """The machine that a resolved trigger runs, for people."""
    name, directory = str(trigger.machine), trigger.directory or ""
    if name in BUILT_IN:
        return f"{name} (built-in)"
    machine = Library().find(name, directory=directory)  # read now: a mistake is reported here
    if machine is None:
        return f"{name} (not found in {directory or '.'})"
    if os.path.dirname(machine.path) == OURS:
        return f"{name} (built-in)"
    return os.path.relpath(machine.path, directory or ".")


def _settings(read: Config, url: str) -> dict[str, PoolSettings]:
    """The settings of the pools that triggers with a machine are for."""
    wanted = {trigger.pool for trigger in read.triggers if trigger.machine is not None}
    pools = {name: settings for name, settings in read.pools.items() if name in wanted}
    missing = [name for name in wanted if name is not None and name not in pools]
    if missing and exists(url):
        with open_store(url) as store:
            pools |= {name: store.pool(name).state().settings for name in missing}
    return pools


def _machine(trigger: Trigger, pools: Mapping[str, PoolSettings]) -> str:
    name, directory = str(trigger.machine), trigger.directory or ""
    settings = pools.get(trigger.pool or "")
    if settings is not None and name in settings.machines:
        return os.path.join(settings.directory or directory, settings.machines[name])
    if name in BUILT_IN:
        for ending in ENDINGS[1:]:
            if os.path.isfile(os.path.join(directory, name + ending)):
                return name + ending
    return name
