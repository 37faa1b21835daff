"""Which program a pool runs: the rule for a push of a task into a pool that has settings. Pure.

A pool serves the tasks of one program, that is, of one directory per host. A push of a task that
the pool does not know adds the task. A push from another directory or source file on the same host
would let the workers of one program run the jobs of another: the pool moves if it is empty, and the
push is refused otherwise. A host other than the one that set the pool up has its own paths: it
changes none of them.
"""

from __future__ import annotations

from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sprat.core.model import PoolSettings


class Program(Record):
    """A task, and where a pushing process found it."""

    task: str  # its name
    handler: str  # module:function
    file: str
    directory: str
    host: str

    @property
    def entry(self) -> dict[str, str]:
        return {"handler": self.handler, "file": self.file, "host": self.host}


def is_other(now: PoolSettings, program: Program) -> bool:
    """Whether the pool belongs to another program on the program's host."""
    owner = now.tasks.get(program.task)
    if owner is not None:
        return owner["host"] == program.host and owner["file"] != program.file
    if now.tasks:
        is_local = any(entry["host"] == program.host for entry in now.tasks.values())
        return is_local and now.directory != program.directory
    return now.handler not in (None, program.handler) or bool(now.command or now.machine)


def adopted(now: PoolSettings, program: Program) -> Mapping[str, Any]:
    """The settings that let the pool's workers run this task, beside those it has."""
    entry = now.tasks.get(program.task)
    if entry is not None and entry["host"] != program.host:
        return {}
    paths = {"handler": now.handler or program.handler, "directory": program.directory}
    if now.handler and not now.tasks:  # set up in sprat.yml, perhaps on another host
        paths["directory"] = now.directory or program.directory
    if now.tasks and not any(other["host"] == program.host for other in now.tasks.values()):
        paths = {}
    if entry is not None and entry["handler"] == now.handler:
        paths["handler"] = program.handler
    return {**paths, "tasks": {**now.tasks, program.task: program.entry}}


def moved(program: Program) -> Mapping[str, Any]:
    """The settings of a pool that is this program's from now on."""
    return {
        "handler": program.handler,
        "command": None,
        "machine": None,
        "directory": program.directory,
        "tasks": {program.task: program.entry},
    }


def refusal(pool: str, now: PoolSettings, program: Program) -> str:
    """Why a push is refused, and what to do."""
    entry = now.tasks.get(program.task) or next(iter(now.tasks.values()), None)
    owner = entry["file"] if entry else now.handler or now.machine or " ".join(now.command or ())
    return (
        f"pool {pool!r} has jobs of {owner}, so task {program.task} of {program.file} cannot be "
        f"pushed to it: give the task a pool of its own with @sprat.task(pool=...), or move the "
        f"pool and its jobs with `sprat move {pool} {program.directory}`"
    )
