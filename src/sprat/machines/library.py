"""Finds machines by name, and reads and compiles each file once.

A name means, in this order: what was bound to it, what the machine that uses it says in `machines`,
a file beside that machine, and a machine that comes with sprat.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from sprat.config import text_file
from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings
from sprat.machines.definition import Machine

ENDINGS = ("", ".yml", ".yaml")
MAX_BYTES = 200_000
# What the source document calls the machines that come with sprat.
ALIASES = {
    "parallelization_checker": "checker",
    "job_worker": "worker",
    "stale_worker_reaper": "reaper",
}
OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "builtin")


class Library:
    """The machines that a run may use. Made before a fork, it is shared by all that follow."""

    def __init__(self, bound: Mapping[str, str] | None = None, directory: str = ".") -> None:
        base = os.path.abspath(directory)
        self.bound = {
            name: os.path.join(base, os.path.expanduser(path))
            for name, path in (bound or {}).items()
        }
        self._read: dict[str, tuple[object, Machine]] = {}

    def bind(self, settings: PoolSettings) -> None:
        """Take over the names of a pool's settings that are not bound yet."""
        base = settings.directory or os.getcwd()
        named = {name: os.path.join(base, path) for name, path in settings.machines.items()}
        self.bound = {**named, **self.bound}

    def find(self, name: str, user: Machine | None = None, directory: str = "") -> Machine | None:
        """The machine that `user` (or somebody in `directory`) calls by this name, or None."""
        if name in self.bound:
            return self.read(self.bound[name])
        if user is not None:
            directory = os.path.dirname(user.path)
            if name in user.machines:
                return self.read(os.path.join(directory, user.machines[name]))
        ours = os.path.join(OURS, ALIASES.get(name, name))
        for place in (os.path.join(directory, name), ours):
            for ending in ENDINGS:
                if os.path.isfile(place + ending):
                    return self.read(place + ending)
        return None

    def get(self, name: str, user: Machine | None = None, directory: str = "") -> Machine:
        found = self.find(name, user, directory)
        if found is None:
            where = os.path.dirname(user.path) if user is not None else directory or "."
            file = name if name.endswith(ENDINGS[1:]) else f"{name}.yml"
            raise InvalidInput(f"there is no machine {name!r}: no {file} in {where}, no binding")
        return found

    def read(self, path: str) -> Machine:
        """The machine in a file, which is read again only after it was changed."""
        path = os.path.abspath(path)
        stamp = _stamp(path)
        if path not in self._read or self._read[path][0] != stamp:
            self._read[path] = (stamp, load(path))
        return self._read[path][1]

    def read_all(self, machine: Machine) -> None:
        """Read also what this machine runs, and what that runs: before a fork."""
        waiting, seen = [machine], {machine.path}
        while waiting:
            user = waiting.pop()
            for state in user.states.values():
                used = state.machine and self.find(state.machine, user)
                if used and used.path not in seen:
                    seen.add(used.path)
                    waiting.append(used)


def load(path: str) -> Machine:
    """Read and check one file."""
    return parse(text_file.read(path, MAX_BYTES, missing="check the name"), path)


def parse(text: str, path: str = "") -> Machine:
    """Check a machine's text; `path` is what errors call it, and where it looks for others."""
    from sprat.config import yaml_tree
    from sprat.machines import schema

    name = os.path.splitext(os.path.basename(path))[0]
    return schema.checked(yaml_tree.read(text, path or "the machine"), path, name or "machine")


def _stamp(path: str) -> object:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
