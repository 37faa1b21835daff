"""The functions that a pool's workers call: found by name, imported once, watched for changes."""

from __future__ import annotations

import os
import sys

from sprat.core.coroutines import outcome
from sprat.core.errors import InvalidInput, JobError, SpratError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sprat.worker.job import Job


class UnknownTask(SpratError):
    """A job names a task that this worker does not have."""


class Handlers:
    """Calls the pool's handler, or the task that a job names."""

    def __init__(self, path: str, tasks: Mapping[str, Mapping[str, str]]) -> None:
        self._files: dict[str, tuple[int, ...]] = {}
        self._default = self._found(path)
        self._tasks: dict[str, Any] = {}
        self._unknown: dict[str, str] = {}
        for name, about in tasks.items():
            self._add(name, about["handler"])

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks that a worker can run with this."""
        return tuple(self._tasks)

    def __call__(self, job: Job) -> Any:
        name = job.item.task
        if name is None:
            return call(self._default, job)
        task = self._tasks.get(name)
        if task is None:
            raise UnknownTask(self._unknown.get(name) or f"no worker of the pool has task {name}")
        return call(task, job)

    def has_changed(self) -> bool:
        """Whether a file of these functions is another than the one that was imported."""
        for file, imported in self._files.items():
            now = _signature(file)
            if now and now != imported:  # a file that is gone may be about to be replaced
                return True
        return False

    def _add(self, name: str, path: str) -> None:
        try:
            task = self._found(path)
        except InvalidInput as error:
            self._unknown[name] = f"task {name}: {error}"
            return
        if getattr(task, "name", None) == name:
            self._tasks[name] = task
        else:
            self._unknown[name] = f"{path} is not task {name}: was it renamed?"

    def _found(self, path: str) -> Any:
        thing = find(path)
        file = getattr(sys.modules.get(path.partition(":")[0]), "__file__", None)
        if file and file not in self._files:
            self._files[file] = _signature(file)
        return thing


def _signature(file: str) -> tuple[int, ...]:
    """What tells one state of a file from another; empty for a file that is gone."""
    try:
        found = os.stat(file)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def call(function: Any, job: Job) -> Any:
    """Call a function with the payload, or a task with its arguments; either may be async."""
    if hasattr(function, "run_item"):
        result = function.run_item(job.item)
    else:
        result = function(job.item.data)
    if not hasattr(result, "__await__"):
        return result
    import asyncio

    try:
        return outcome(result)
    except asyncio.CancelledError:
        raise JobError("the job cancelled itself") from None


_importing: list[str] = []


def is_importing() -> bool:
    """Whether a handler is being imported now: code that pushes then would push for ever."""
    return bool(_importing)


def find(path: str) -> Any:
    """What `module:name` names; one sentence when it cannot be had."""
    module_name, _, name = path.partition(":")
    _importing.append(module_name)
    try:
        thing: Any = __import__(module_name, fromlist=[name])
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"the handler {path} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    finally:
        _importing.pop()
    for part in name.split("."):
        if not hasattr(thing, part):
            raise InvalidInput(f"the handler {path}: {module_name} has no {name}")
        thing = getattr(thing, part)
    if not callable(thing):
        raise InvalidInput(f"the handler {path} is not a function")
    return thing
