"""`sprat move`: the code of a pool's tasks is in another directory from now on."""

from __future__ import annotations

import os

from sprat.cli.arguments import CommandParser
from sprat.cli.main import DONE
from sprat.cli.output import document, number
from sprat.cli.target import known_pool, open_existing
from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sprat.core.model import PoolSettings


def parser() -> CommandParser:
    made = CommandParser(prog="sprat move")
    made.add_argument("pool", metavar="POOL")
    made.add_argument("directory", metavar="DIRECTORY", help="where workers import the tasks from")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    directory = os.path.realpath(asked.directory)
    with open_existing(asked.url) as store:
        pool = store.pool(known_pool(store, asked.pool))
        settings = pool.state().settings
        pool.configure(directory=directory, tasks=_moved(asked.pool, settings, directory))
        waiting = pool.size()
        pool.start_fleet()
    if asked.json:
        document({"pool": asked.pool, "directory": directory, "waiting": waiting})
    else:
        print(f"{asked.pool}: workers import from {directory}; {number(waiting, 'job')} waiting")
    return DONE


def _moved(pool: str, settings: PoolSettings, directory: str) -> Mapping[str, Mapping[str, str]]:
    """The pool's tasks with their files in the new directory, where they have to exist."""
    if not settings.tasks:
        raise InvalidInput(f"pool {pool} has no tasks: set its directory in sprat.yml and apply it")
    before = settings.directory or ""
    moved = {}
    for name, about in settings.tasks.items():
        file = os.path.join(directory, os.path.relpath(about["file"], before))
        if not os.path.isfile(file):
            raise InvalidInput(f"task {name} would be in {file}, which does not exist")
        moved[name] = {**about, "file": file, "host": os.uname().nodename}
    return moved
